package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/internal/offline/inspect"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/server"
)

// recoverFlags contains the flags of zkgo recover.
type recoverFlags struct {
	serverFlags
	resultFlags
	compare     []string
	rejoin      string
	epoch       uint32
	dryRun, yes bool
}

func recoverCommand() *cobra.Command {
	f := recoverFlags{serverFlags: serverFlags{logFormat: "text", logLevel: "warn"}}
	cmd := &cobra.Command{
		Use:   "recover [zoo.cfg]",
		Short: "Recover from the permanent loss of a majority of the servers",
		Long: `Start a new ensemble from the state of one surviving server.

An ensemble that has permanently lost a majority of its voters can't recover by itself,
because the lost servers may have acknowledged writes that the others don't have. This
command makes the state of one stopped server the state of a new ensemble.

 1. Stop all survivors.
 2. Run the command with --dry-run on each survivor, and choose the one with the highest
    term or, if terms are equal, the highest index. --compare does this for directories
    on the same machine.
 3. Run the command with --yes on that server, and start it. The new state includes all
    entries of its log. All sessions and their ephemeral znodes are removed.
 4. On each other survivor, run the command with --rejoin and the printed id, and start
    the server. It joins the new ensemble, as does any server with an empty directory.

The configuration lists the members of the new ensemble. The old files are moved
to before-recovery-... next to them.`,
		Example: `  zkgo recover --dry-run /etc/zookeeper/zoo.cfg
  zkgo recover --yes /etc/zookeeper/zoo.cfg
  zkgo recover --yes --compare /mnt/two/data --compare /mnt/three/data,/mnt/three/log zoo.cfg
  zkgo recover --yes --rejoin 8dd59e83fee1091079774c41aef5d02a zoo.cfg`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.name(cmd, args); err != nil {
				return err
			}
			return runRecover(&f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	f.reading(flags, "of the data (zoo.cfg: dataDir)")
	outputVar(flags, &f.output)
	flags.StringArrayVar(&f.compare, "compare", nil, "`dataDir[,dataLogDir]` of another survivor: fail if it is more advanced; may be repeated")
	flags.StringVar(&f.rejoin, "rejoin", "", "move this server's state aside, so that it joins the recovered ensemble with this `id`")
	flags.Uint32Var(&f.epoch, "epoch", 0, "minimum `epoch` of the new ensemble, if clients may have seen a higher one")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only print the state and what the command would do")
	flags.BoolVar(&f.yes, "yes", false, "do it")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "yes")
	cmd.MarkFlagsMutuallyExclusive("rejoin", "compare")
	cmd.MarkFlagsMutuallyExclusive("rejoin", "epoch")
	return cmd
}

// errNotAsked is the error of a command that ran without --yes and so changed
// nothing.
var errNotAsked = errors.New("nothing was changed: use --yes to recover")

func runRecover(f *recoverFlags, stdout, stderr io.Writer) error {
	z, err := f.zooCfg()
	if err != nil {
		return err
	}
	cfg, err := runnable(z)
	if err != nil {
		return err
	}
	if cfg.Logger, err = newLogger(stderr, f.logFormat, f.logLevel); err != nil {
		return err
	}
	if f.rejoin != "" {
		return runRejoin(f, cfg, stdout)
	}
	r := recovery{Members: membersOf(&cfg), ensemble: len(cfg.Quorum.Members) > 0}
	mine, err := survey(f, cfg, &r)
	if err == nil {
		r.Sessions = mine.Sessions
		err = f.recoverState(cfg, &r)
	}
	if len(r.Survivors) > 0 {
		err = errors.Join(f.print(stdout, r), err)
	}
	return err
}

// recoverState makes the state the beginning of a new ensemble, if --yes was given.
func (f *recoverFlags) recoverState(cfg server.Config, r *recovery) error {
	r.Ready = true
	if !f.yes {
		return f.unasked()
	}
	offline, err := cfg.Offline()
	if err != nil {
		return err
	}
	done, err := offline.Recover(f.epoch)
	if err != nil {
		return err
	}
	r.Done, r.Cluster, r.Zxid, r.Aside = true, done.Cluster, inspect.Hex(done.Zxid), done.Aside
	return nil
}

// recovery is the result to print.
type recovery struct {
	Survivors []survivor  `json:"survivors,omitempty"`
	Members   string      `json:"members,omitempty"` // possible members of the new ensemble
	Sessions  int         `json:"sessions"`          // sessions that end
	Ready     bool        `json:"ready"`             // this server is the one to recover
	Done      bool        `json:"done"`
	Cluster   string      `json:"ensemble,omitempty"`
	Zxid      inspect.Hex `json:"zxid,omitempty"`
	Aside     []string    `json:"oldState,omitempty"`
	ensemble  bool
}

// survivor is the state of a server.
type survivor struct {
	LogDir   string      `json:"logDir"`
	Server   uint64      `json:"server"`
	Cluster  string      `json:"ensemble"`
	Voters   []uint64    `json:"voters"`
	Term     uint64      `json:"term"`
	Index    uint64      `json:"index"`
	Zxid     inspect.Hex `json:"zxid"`
	Znodes   int         `json:"znodes"`
	Sessions int         `json:"sessions"`
}

// Text implements texter.
func (r recovery) Text(w io.Writer) error {
	var err error
	for _, p := range r.Survivors {
		_, err = fmt.Fprintf(w, "%s: server %d of ensemble %s with voters %v\n  newest log entry: term %d, index %d\n  zxid %v, %s, %s\n",
			p.LogDir, p.Server, p.Cluster, p.Voters, p.Term, p.Index, p.Zxid, count(p.Znodes, "znode"), count(p.Sessions, "session"))
	}
	if r.Ready {
		_, err = fmt.Fprintf(w, "Recovery starts a new ensemble with this state: %s.\nAll sessions (%d) end. Servers of the old ensemble can't connect.\n", r.Members, r.Sessions)
	}
	if !r.Done {
		return err
	}
	_, err = fmt.Fprintf(w, "Done. New ensemble %s, first zxid %v.\nThe old state is in %s.\n", r.Cluster, r.Zxid, strings.Join(r.Aside, " and "))
	if r.ensemble {
		_, err = fmt.Fprintf(w, "Start this server. On each other survivor, run this command and then start the server:\n  zkgo recover --yes --rejoin %s zoo.cfg\n", r.Cluster)
	}
	return err
}

// unasked returns the error of a command that wasn't confirmed; with --dry-run it's
// nil.
func (f *recoverFlags) unasked() error {
	if f.dryRun {
		return nil
	}
	return errNotAsked
}

// survey adds the state of this server and of the compared ones to r. It returns an error if
// another server should be recovered instead.
func survey(f *recoverFlags, cfg server.Config, r *recovery) (mine raftfsm.Position, err error) {
	if mine, err = surveyed(&cfg); err != nil {
		return mine, err
	}
	r.add(&mine)
	for _, dirs := range f.compare {
		other := server.Config{Log: server.Log{Store: cfg.Log.Store, Bolt: cfg.Log.Bolt}, Logger: cfg.Logger}
		other.DataDir, other.Log.Dir, _ = strings.Cut(dirs, ",")
		p, err := surveyed(&other)
		if err != nil {
			return mine, err
		}
		r.add(&p)
		switch {
		case p.Cluster != mine.Cluster:
			return mine, fmt.Errorf("%s belongs to another ensemble than %s", p.LogDir, mine.LogDir)
		case p.Compare(&mine) > 0:
			return mine, fmt.Errorf("%s is more advanced: recover server %d", p.LogDir, p.Server)
		}
	}
	return mine, nil
}

// surveyed returns how far the state of a stopped server goes.
func surveyed(cfg *server.Config) (raftfsm.Position, error) {
	offline, err := cfg.Offline()
	if err != nil {
		return raftfsm.Position{}, err
	}
	return offline.Survey()
}

// add adds the state of a server.
func (r *recovery) add(p *raftfsm.Position) {
	r.Survivors = append(r.Survivors, survivor{p.LogDir, p.Server, p.Cluster, p.Voters, p.Term, p.Index, inspect.Hex(p.Zxid), p.Znodes, p.Sessions})
}

// membersOf describes the possible members of the new ensemble.
func membersOf(cfg *server.Config) string {
	if len(cfg.Quorum.Members) == 0 {
		return "one standalone server"
	}
	var ids []string
	for _, m := range cfg.Quorum.Members {
		ids = append(ids, fmt.Sprint(m.ID))
	}
	return "servers " + strings.Join(ids, ", ") + " of the configuration"
}

// runRejoin moves this server's state aside.
func runRejoin(f *recoverFlags, cfg server.Config, stdout io.Writer) error {
	r := rejoining{Server: cfg.Quorum.ID, DataDir: cfg.DataDir, Cluster: f.rejoin}
	if !f.yes {
		return errors.Join(f.print(stdout, r), f.unasked())
	}
	offline, err := cfg.Offline()
	if err != nil {
		return err
	}
	if r.Aside, err = offline.Rejoin(f.rejoin); err != nil {
		return err
	}
	return f.print(stdout, r)
}

// rejoining is the result to print.
type rejoining struct {
	Server  uint64   `json:"server"`
	DataDir string   `json:"dataDir"`
	Cluster string   `json:"ensemble"`
	Aside   []string `json:"oldState,omitempty"` // empty: nothing was done
}

// Text implements texter.
func (r rejoining) Text(w io.Writer) error {
	if len(r.Aside) > 0 {
		_, err := fmt.Fprintf(w, "Done. The old state is in %s. Start this server.\n", strings.Join(r.Aside, " and "))
		return err
	}
	_, err := fmt.Fprintf(w, "The state of server %d in %s would be moved aside, so that it joins the ensemble %s.\n", r.Server, r.DataDir, r.Cluster)
	return err
}
