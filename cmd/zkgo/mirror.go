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

// mirrorFlags contains the flags of zkgo mirror.
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
		Short: "Replicate a running ZooKeeper ensemble and take over from it",
		Long: `Run a server that replicates a running Apache ZooKeeper ensemble (3.4 to 3.9) until
zkgo mirror cutover makes it take over.

The server joins the ensemble as an observer, which needs no change to the ensemble's
configuration. It receives the state and then every transaction, writes them to its own
log, and compares ZooKeeper's digest after each (3.6 and later). It never writes to the
ensemble. After a restart, it continues where it stopped. To replicate to several zkgo
servers, run this command on each server.

--from lists the quorum addresses of all voters, or names the zoo.cfg of one voter.
--sasl and the --tls flags apply to the connection to the ensemble's leader. The data
directory must be empty at first; the server never replaces its own sessions and
znodes. The data directory stores --from and --clients, so you may omit them after a
restart.

With --serve, clients can already connect, and move one by one before the cutover. The
mirror answers reads, and forwards writes, sessions and pings to the old ensemble.

The ensemble to replicate may also be zkgo's, e.g. for a standby at another site: use
the servers' observerMasterPort in --from, e.g. zk1:2191,zk2:2191. One reachable server
is enough. In this case, --serve=read-only serves clients that accept read-only
sessions.

See docs/operate/migrate.md for the whole procedure, including the rollback.`,
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
	flags.StringVar(&f.from, "from", "", "`ensemble` to replicate: host:quorumport,… of all voters, or its zoo.cfg")
	flags.StringVar(&f.clients, "clients", "", "client `addresses` of the ensemble's servers, in the order of --from; required for ZooKeeper 3.4 without a zoo.cfg")
	flags.Int64Var(&f.id, "observer-id", takeover.ObserverID, "server `number` to use in the ensemble; must be unused there")
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

// mirrorSubcommand returns a command for the server with the given configuration.
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
	line("role", "%s", map[bool]string{true: "this server leads and has the connection", false: "this server follows the one that has the connection"}[s.Leads])
	return nil
}

// arrivalText says how much of a snapshot has arrived.
func arrivalText(a *takeover.Arrival) string {
	text := fmt.Sprintf("%s, %d MiB", count(a.Znodes, "znode"), a.Bytes>>20)
	switch {
	case a.Complete:
		return text + " received, writing them to the log"
	case a.Expected > 0:
		return fmt.Sprintf("%s of about %d znodes (%d %%, an estimate)", text, a.Expected, min(99, 100*a.Znodes/a.Expected))
	}
	return text + " received; total unknown"
}

func mirrorStatusCommand() *cobra.Command {
	var f mirrorCommandFlags
	var every time.Duration
	cmd := mirrorSubcommand("status", "Show the status of a mirror",
		`Show the phase of a mirror, how far it lags behind the old ensemble, and any problem that
keeps it from following. The command works on each of the zkgo servers. The exit code is
1 if the mirror is broken, or is following but not in sync.

With --every, a terminal shows a progress bar while a snapshot arrives. The total is an
estimate: the number of znodes when the snapshot began.`,
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
	cmd.Flags().DurationVar(&every, "every", 0, "print the status again after each `interval`")
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
  1. --fence-command, or you, close the client ports of the old servers
  2. this server checks that none of the ports answers
  3. this server applies everything up to the old leader's last transaction
  4. epoch %d begins, each session gets its full timeout, and these servers serve clients
expected pause for clients: step 1, and about half a second for the rest
nothing was changed
`, r.NextEpoch)
		return err
	}
	_, err := fmt.Fprintf(w, "taken over at zxid %v: fence %v, proof %v, switch %v\nrollback is possible until zkgo mirror finalize\n", inspect.Hex(r.Zxid), ms(r.Fence), ms(r.Proof), ms(r.Switch))
	return err
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func mirrorCutoverCommand() *cobra.Command {
	var f mirrorCommandFlags
	var o takeover.CutoverOptions
	var last string
	cmd := mirrorSubcommand("cutover", "Take over from the replicated ensemble",
		`Take over from the old ensemble: run all checks, wait until no client can reach the old
servers, apply their last transaction, and start to serve clients. Run the command on
the zkgo leader.

The client ports of the old servers must be closed. --fence-command does this: it runs
once for each old server, with {host}, {port} and {id} replaced. Otherwise, close the
ports yourself while the command waits. The old servers should keep running, because
their leader confirms which transaction was the last. If --fence-command stops them,
either use --log-command, a command that prints the newest zxid in a server's log, or
find the zxid with zkgo inspect and pass it as --last-zxid. If the servers are lost with
their disks, use --accept-lost: transactions that this server has not received are lost.
The command checks the client ports in each case.

If a check fails, nothing changes on either side. --dry-run only runs the checks.`,
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
	flags.BoolVar(&o.DryRun, "dry-run", false, "only run the checks and print the plan")
	flags.BoolVar(&o.Force, "ignore-findings", false, "continue although checks have failed")
	flags.StringVar(&o.FenceCommand, "fence-command", "", "shell `command` that closes the client ports of one old server")
	flags.StringVar(&o.LogCommand, "log-command", "", "shell `command` that prints the newest zxid in the log of one old server, as 0x…, if --fence-command stops the servers")
	durationVar(flags, &o.FenceTimeout, "fence-timeout", time.Minute, false, "how long to wait until the ports are closed")
	flags.StringSliceVar(&o.Proxies, "proxy", nil, "client `address` of a proxy of the old ensemble, which accepts connections even without a server")
	flags.BoolVar(&o.AcceptLost, "accept-lost", false, "take over from lost servers, without the transactions that this server has not received")
	flags.StringVar(&last, "last-zxid", "", "newest `zxid` in the logs of the old servers, if you have stopped every server")
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
	_, err := fmt.Fprintln(w, "zkgo no longer serves clients. Stop the zkgo servers and start ZooKeeper on these directories, or return to zkgo with zkgo mirror resume")
	return err
}

func mirrorRollbackCommand() *cobra.Command {
	var f mirrorCommandFlags
	var to []string
	cmd := mirrorSubcommand("rollback", "Return to Apache ZooKeeper",
		`Stop serving clients, and write the state as data directories from which Apache
ZooKeeper starts with the same znodes, stats and sessions. Each directory of --write-to
gets a copy; its version-2 must be missing or empty. A myid file in it is kept.

The zkgo servers reject clients until zkgo mirror resume, so no write is lost in
between. Sessions survive, even if they began after the cutover. After zkgo mirror
finalize, a rollback is not possible.`,
		`  zkgo mirror rollback --write-to /var/lib/zookeeper zoo.cfg
  zkgo mirror rollback --write-to /tmp/zk1,/tmp/zk2,/tmp/zk3 zoo.cfg`, &f,
		func(cmd *cobra.Command, c *takeover.Client) error {
			if len(to) == 0 {
				return usagef("no target: name empty data directories for ZooKeeper with --write-to")
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
			return r, fmt.Errorf("%s: %w; the servers reject clients until zkgo mirror resume or a successful rollback", dir, err)
		}
		r.Snapshots, r.Zxid = append(r.Snapshots, path), inspect.Hex(zxid)
	}
	return r, nil
}

func mirrorResumeCommand() *cobra.Command {
	var f mirrorCommandFlags
	return mirrorSubcommand("resume", "Serve clients again after a rollback",
		`Serve clients again after zkgo mirror rollback. Use this only if no ZooKeeper server has
served clients from the data that the rollback wrote: zkgo does not have their writes.`,
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
	return mirrorSubcommand("finalize", "End the migration",
		`End the migration. New sessions get random passwords again, a rollback is no longer
possible, and you can start the servers with zkgo server.`,
		`  zkgo mirror finalize zoo.cfg`, &f, func(cmd *cobra.Command, c *takeover.Client) error {
			s, err := c.SetPhase(cmd.Context(), "done")
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), mirrorStatus{s})
		})
}
