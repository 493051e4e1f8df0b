package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/internal/defaults"
	"github.com/zkgo/zkgo/internal/offline/inspect"
	"github.com/zkgo/zkgo/internal/offline/migrate"
	"github.com/zkgo/zkgo/internal/takeover"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/tree"
)

// mirrorFlags holds the flags of zkgo mirror.
type mirrorFlags struct {
	server        serverFlags
	connect       connectFlags // to the ensemble
	from, clients string
	id            int64
	serve         string
}

// The clients that a mirror may serve before the cutover.
const (
	serveAll      = "all"
	serveReadOnly = "read-only"
)

func mirrorCommand() *cobra.Command {
	var f mirrorFlags
	cmd := &cobra.Command{
		Use:   "mirror [zoo.cfg]",
		Short: "Follow a running ZooKeeper ensemble and take over from it",
		Long: `Run a server whose state is that of a running Apache ZooKeeper ensemble (3.4 to
3.9), until the servers take over from it with zkgo mirror cutover.

The server joins the ensemble as an observer that no configuration lists. It gets
the state, and then every transaction, writes them into its own log, and compares
ZooKeeper's digest after each (3.6 and later). It changes nothing in the
ensemble. After a restart it continues where it was. In an ensemble of zkgo
servers, start each of them with this command.

--sasl and the --tls flags are for the connection to the ensemble's leader.

--from is a list of the quorum addresses of all voters, or a zoo.cfg of one of them.
A restart may leave out --from and --clients: the data directory remembers them.
Its data directory must be empty at first. Sessions and znodes of its own are never
replaced.

With --serve, clients may already connect. They read here. Their writes, sessions
and pings go to the old ensemble, so they can move one by one before the cutover.

To follow zkgo servers, as a standby in another place or to move them, name their
observerMasterPort with --from, e.g. zk1:2191,zk2:2191. Any of them will do. There,
--serve=read-only serves reads to clients that accept a read-only session.

docs/operate/migrate.md has the whole way, and the way back.`,
		Example: `  zkgo mirror --from zk1:2888,zk2:2888,zk3:2888 --data-dir /var/lib/zkgo
  zkgo mirror --from old-zoo.cfg --serve zoo.cfg
  zkgo mirror --from zk1:2191,zk2:2191,zk3:2191 --serve=read-only zoo.cfg
  zkgo mirror status zoo.cfg
  zkgo mirror cutover --dry-run zoo.cfg`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.server.name(cmd, args); err != nil {
				return err
			}
			if err := f.connect.resolve(cmd); err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "`ensemble` to follow: host:quorumport,… of all voters, or its zoo.cfg")
	flags.StringVar(&f.clients, "clients", "", "client `addresses` of its servers, in the order of --from; needed for ZooKeeper 3.4 without a zoo.cfg")
	flags.Int64Var(&f.id, "observer-id", takeover.ObserverID, "`number` of this server in the ensemble; none of its own servers may have it")
	flags.StringVar(&f.serve, "serve", "", "serve `clients` before the cutover: all, or read-only")
	flags.Lookup("serve").NoOptDefVal = serveAll
	f.connect.register(flags, mirrorSettings)
	f.server.reading(flags, "for the data (zoo.cfg: dataDir; default ./zkgo-data)")
	f.server.port(flags, "for clients (zoo.cfg: clientPort; default 2181)")
	f.server.logging(flags)
	cmd.AddCommand(mirrorStatusCommand(), mirrorCutoverCommand(), mirrorRollbackCommand(), mirrorResumeCommand(), mirrorFinalizeCommand())
	return cmd
}

// run runs a server that follows the ensemble.
func (f *mirrorFlags) run(ctx context.Context, stderr io.Writer) error {
	if f.serve != "" && f.serve != serveAll && f.serve != serveReadOnly {
		return usagef("--serve=%s: want %s or %s", f.serve, serveAll, serveReadOnly)
	}
	if _, err := os.Stat(f.server.config); f.from == "" && f.server.config != "" && f.server.config != "-" && errors.Is(err, fs.ErrNotExist) {
		return usagef("%s is neither a command of zkgo mirror nor a zoo.cfg", f.server.config)
	}
	o := takeover.Options{Progress: arrivalProgress(stderr), From: f.from, Clients: f.clients, ObserverID: f.id, Serve: f.serve == serveAll, ReadsOnly: f.serve == serveReadOnly}
	var err error
	if f.connect.sasl != "" {
		if o.User, o.Password, err = credentials("--sasl", f.connect.sasl); err != nil {
			return err
		}
	}
	if o.TLS, err = f.connect.tlsConfig(); err != nil {
		return err
	}
	return runServer(ctx, &f.server, stderr, func(cfg *server.Config) (started, error) {
		o.MinTimeout = cmp.Or(cfg.MinSessionTimeout, defaults.MinSessionTicks*cmp.Or(cfg.TickTime, defaults.TickTime))
		o.MaxField, o.MaxRequest, o.Logger = migrate.MaxField(cfg), cfg.Limits.JuteMaxBuffer, cfg.Logger
		if cfg.Znodes.Emulate353TTL {
			o.Policy = tree.Emulate353TTL
		}
		o.DataDir = cfg.DataDir
		m, err := takeover.Configure(o)
		switch {
		case errors.Is(err, takeover.ErrNoEnsemble):
			return nil, usagef("%v", err)
		case err != nil:
			return nil, err
		}
		cfg.Env.Mirror = m
		dir := cfg.DataDir
		return func(ctx context.Context, s *server.Server) (<-chan struct{}, error) {
			return m.Serve(ctx, dir, s.Node())
		}, nil
	})
}

// mirrorCommands serves zkgo mirror status and its like on a server that was started without
// zkgo mirror, if its state has a mirror.
func mirrorCommands(cfg server.Config, s *server.Server) started {
	m := takeover.New(takeover.Config{Logger: cfg.Logger})
	if !m.Announce(s.Node()) {
		return nil
	}
	return func(ctx context.Context, s *server.Server) (<-chan struct{}, error) {
		return m.Serve(ctx, cfg.DataDir, s.Node())
	}
}

// mirrorCommandFlags are the flags of all commands to a running mirror.
type mirrorCommandFlags struct {
	serverFlags
	resultFlags
}

// mirrorSubcommand returns a command for the server whose configuration it names.
func mirrorSubcommand(name, short, long, example string, f *mirrorCommandFlags, run func(cmd *cobra.Command, c *takeover.Client) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: name + " [zoo.cfg]", Short: short, Long: long, Example: example, Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.name(cmd, args); err != nil {
				return err
			}
			z, err := f.zooCfg()
			if err != nil {
				return err
			}
			return run(cmd, takeover.NewClient(z.DataDir))
		},
	}
	f.reading(cmd.Flags(), "of the server (zoo.cfg: dataDir; default ./zkgo-data)")
	outputVar(cmd.Flags(), &f.output)
	return cmd
}

// mirrorStatus is the status to print.
type mirrorStatus struct{ takeover.Status }

// Text implements texter.
func (s mirrorStatus) Text(w io.Writer) error {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("phase", "%s", s.Phase)
	if s.Broken != "" {
		line("broken", "%s", s.Broken)
	}
	line("state", "zxid %v, %s, %s, %s", inspect.Hex(s.Zxid), count(s.Znodes, "znode"), count(s.Sessions, "session"), count(s.Ephemerals, "ephemeral"))
	if s.Phase != "following" && s.Phase != "none" {
		line("taken over", "at zxid %v of the old ensemble", inspect.Hex(s.TakenOverAt))
		return nil
	}
	switch {
	case s.Leader == "":
		line("ensemble", "not connected")
	case s.Lag < 0:
		line("ensemble", "leader %s, in another epoch (zxid %v)", s.Leader, inspect.Hex(s.Proposed))
	default:
		line("ensemble", "leader %s, %s behind, heard %d ms ago", s.Leader, count(s.Lag, "transaction"), s.LagMillis)
	}
	line("in sync", "%v", s.InSync)
	line("digests", "%s matched since the start", count(s.Compared, "digest"))
	if a := s.Snapshot; a != nil {
		line("snapshot", "%s", arrivalText(a))
	}
	if s.Problem != "" {
		line("problem", "%s", s.Problem)
	}
	line("role", "%s", map[bool]string{true: "this server leads, and has the connection", false: "this server follows the one that has the connection"}[s.Leads])
	return nil
}

// arrivalText says how much of a snapshot has arrived.
func arrivalText(a *takeover.Arrival) string {
	text := fmt.Sprintf("%s, %d MiB", count(a.Znodes, "znode"), a.Bytes>>20)
	switch {
	case a.Complete:
		return text + " have arrived, and go into the log"
	case a.Expected > 0:
		return fmt.Sprintf("%s of about %d znodes (%d %%, an estimate)", text, a.Expected, min(99, 100*a.Znodes/a.Expected))
	}
	return text + " have arrived; how many there are is not known"
}

func mirrorStatusCommand() *cobra.Command {
	var f mirrorCommandFlags
	var every time.Duration
	cmd := mirrorSubcommand("status", "Show how far a mirror is",
		`Show the phase of a mirror, how far it is behind the old ensemble, and what keeps it
from following. Ask on any of the servers. The exit code is 1 if the mirror is broken, or
follows and is not in sync.

With --every on a terminal, a snapshot that arrives has a progress bar. Its size is an estimate:
the number of znodes that the ensemble had when the snapshot began.`,
		`  zkgo mirror status zoo.cfg
  zkgo mirror status --every 1s --data-dir /var/lib/zkgo
  zkgo mirror status -o json zoo.cfg`, &f, func(cmd *cobra.Command, c *takeover.Client) error {
			var bar func(*takeover.Arrival)
			if every > 0 && f.output != "json" {
				bar = arrivalProgress(cmd.OutOrStdout())
			}
			for {
				s, err := c.Status(cmd.Context())
				if err != nil {
					return err
				}
				if bar != nil {
					bar(s.Snapshot)
				}
				if bar == nil || s.Snapshot == nil {
					if err := f.print(cmd.OutOrStdout(), mirrorStatus{s}); err != nil {
						return err
					}
				}
				if every == 0 {
					if s.Broken != "" || !s.InSync && (s.Phase == "following" || s.Phase == "none") {
						return exitCode(codeFailed)
					}
					return nil
				}
				select {
				case <-time.After(every):
				case <-cmd.Context().Done():
					return nil
				}
			}
		})
	cmd.Flags().DurationVar(&every, "every", 0, "show it again after each `interval`")
	return cmd
}

// cutoverResult is the report to print.
type cutoverResult struct {
	takeover.CutoverReport
	dry bool
}

// Text implements texter.
func (r cutoverResult) Text(w io.Writer) error {
	if err := r.Findings.Write(w); err != nil {
		return err
	}
	if r.dry {
		_, err := fmt.Fprintf(w, `plan:
  1. the client ports of the old servers are closed: by --fence-command, or by you
  2. this server checks from outside that none of them answers
  3. the old leader proves its newest transaction, which is applied here
  4. epoch %d begins, each session gets its full timeout, and these servers serve
expected pause for clients: step 1, and about half a second for the rest
nothing was changed
`, r.NextEpoch)
		return err
	}
	_, err := fmt.Fprintf(w, "taken over at zxid %v: fence %v, proof %v, switch %v\nthe way back is open until zkgo mirror finalize\n", inspect.Hex(r.Zxid), ms(r.Fence), ms(r.Proof), ms(r.Switch))
	return err
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func mirrorCutoverCommand() *cobra.Command {
	var f mirrorCommandFlags
	var o takeover.CutoverOptions
	var last string
	cmd := mirrorSubcommand("cutover", "Take over from the ensemble that is followed",
		`Check everything, make sure that no client can reach the old ensemble, get its last
transaction, and serve. Run it on the zkgo server that leads.

The old client ports are closed by --fence-command, which runs once for each old server
with {host}, {port} and {id} replaced, or by you while the command waits. The old servers
themselves should go on running: their leader proves which transaction was the last. If
the command stops them instead, name another one with --log-command that prints the newest
zxid in the log of a server, or look it up (zkgo inspect) and pass it as --last-zxid.
If they are lost with their disks, --accept-lost takes over with what is here: what they have
committed after that is gone. The client ports are checked all the same.

If a check fails, nothing is changed on either side. --dry-run only checks.`,
		`  zkgo mirror cutover --dry-run zoo.cfg
  zkgo mirror cutover --fence-command 'ssh {host} sudo iptables -I INPUT -p tcp --dport {port} -j REJECT --reject-with tcp-reset' zoo.cfg`, &f,
		func(cmd *cobra.Command, c *takeover.Client) error {
			if last != "" {
				var err error
				if o.LastZxid, err = strconv.ParseInt(strings.TrimPrefix(last, "0x"), 16, 64); err != nil {
					return usagef("--last-zxid %s: want a hexadecimal number", last)
				}
			}
			r, err := c.Cutover(cmd.Context(), o, func(step string) { fmt.Fprintln(cmd.ErrOrStderr(), step) })
			if err != nil {
				if len(r.Findings) > 0 {
					_ = r.Findings.Write(cmd.ErrOrStderr())
				}
				return err
			}
			return f.print(cmd.OutOrStdout(), cutoverResult{r, o.DryRun})
		})
	flags := cmd.Flags()
	flags.BoolVar(&o.DryRun, "dry-run", false, "only check, and print the plan")
	flags.BoolVar(&o.Force, "ignore-findings", false, "go on although checks have failed")
	flags.StringVar(&o.FenceCommand, "fence-command", "", "shell `command` that closes the client ports of one old server")
	flags.StringVar(&o.LogCommand, "log-command", "", "shell `command` that prints the newest zxid in the log of one old server, as 0x…, if the fence stops the servers")
	durationVar(flags, &o.FenceTimeout, "fence-timeout", time.Minute, false, "how long the ports may take to close")
	flags.StringSliceVar(&o.Proxies, "proxy", nil, "client `address` of the old ensemble that is a proxy's, which accepts connections without a server")
	flags.BoolVar(&o.AcceptLost, "accept-lost", false, "take over from servers that are lost, without the transactions that are not here")
	flags.StringVar(&last, "last-zxid", "", "newest `zxid` in the logs of the old servers, if all of them are stopped")
	return cmd
}

// rollbackResult is the result to print.
type rollbackResult struct {
	Snapshots []string    `json:"snapshots"`
	Zxid      inspect.Hex `json:"zxid"`
	Sessions  int         `json:"sessions"`
	Znodes    int         `json:"znodes"`
}

// Text implements texter.
func (r rollbackResult) Text(w io.Writer) error {
	for _, path := range r.Snapshots {
		fmt.Fprintf(w, "%s: %s and %s at zxid %v\n", path, count(r.Znodes, "znode"), count(r.Sessions, "session"), r.Zxid)
	}
	_, err := fmt.Fprintln(w, "clients can no longer write here. Stop the zkgo servers, and start ZooKeeper on these directories; zkgo mirror resume goes back to zkgo instead")
	return err
}

func mirrorRollbackCommand() *cobra.Command {
	var f mirrorCommandFlags
	var to []string
	cmd := mirrorSubcommand("rollback", "Give the state back to Apache ZooKeeper",
		`Close the zkgo servers for clients and write their state as data directories from which
Apache ZooKeeper starts, with the same znodes, stats and sessions. Every directory of
--write-to gets a copy; it must have no version-2, or an empty one. A myid in it stays.

The servers stay closed until zkgo mirror resume, so no write is lost in between. Sessions
go on at ZooKeeper: those that began after the cutover have passwords of ZooKeeper's
kind. After zkgo mirror finalize there is no way back.`,
		`  zkgo mirror rollback --write-to /var/lib/zookeeper zoo.cfg
  zkgo mirror rollback --write-to /tmp/zk1,/tmp/zk2,/tmp/zk3 zoo.cfg`, &f,
		func(cmd *cobra.Command, c *takeover.Client) error {
			if len(to) == 0 {
				return usagef("where to? Name empty data directories for ZooKeeper with --write-to")
			}
			r, err := rollback(cmd.Context(), c, to)
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), r)
		})
	cmd.Flags().StringSliceVar(&to, "write-to", nil, "data `directory` for ZooKeeper; may be repeated")
	return cmd
}

// rollback closes the servers for clients and writes their state.
func rollback(ctx context.Context, c *takeover.Client, to []string) (r rollbackResult, err error) {
	for _, dir := range to {
		if err := migrate.CheckEmpty(dir); err != nil {
			return r, err
		}
	}
	s, err := c.SetPhase(ctx, "fenced")
	if err != nil {
		return r, err
	}
	r.Znodes, r.Sessions = s.Znodes, s.Sessions
	for _, dir := range to {
		path, zxid, err := migrate.WriteData(dir, func(w io.Writer) (int64, error) { return c.Snapshot(ctx, w) })
		if err != nil {
			return r, fmt.Errorf("%s: %w; the servers stay closed for clients until zkgo mirror resume, or a rollback that succeeds", dir, err)
		}
		r.Snapshots, r.Zxid = append(r.Snapshots, path), inspect.Hex(zxid)
	}
	return r, nil
}

func mirrorResumeCommand() *cobra.Command {
	var f mirrorCommandFlags
	return mirrorSubcommand("resume", "Serve clients again after a rollback",
		`Serve clients again after zkgo mirror rollback. Use it only if no ZooKeeper was started
on the data that the rollback has written, or none has served a client: what it has
written is not here.`,
		`  zkgo mirror resume zoo.cfg`, &f, func(cmd *cobra.Command, c *takeover.Client) error {
			s, err := c.SetPhase(cmd.Context(), "open")
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), mirrorStatus{s})
		})
}

func mirrorFinalizeCommand() *cobra.Command {
	var f mirrorCommandFlags
	return mirrorSubcommand("finalize", "Give up the way back to ZooKeeper",
		`End the migration: new sessions get random passwords again, zkgo mirror rollback is
refused, and the servers can be started with zkgo server.`,
		`  zkgo mirror finalize zoo.cfg`, &f, func(cmd *cobra.Command, c *takeover.Client) error {
			s, err := c.SetPhase(cmd.Context(), "done")
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), mirrorStatus{s})
		})
}
