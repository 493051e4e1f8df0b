package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/internal/learner"
	"github.com/zkgo/zkgo/internal/mirror"
	"github.com/zkgo/zkgo/internal/offline/migrate"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/internal/takeover"
	"github.com/zkgo/zkgo/raftfsm"
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
	flags.Int64Var(&f.id, "observer-id", takeover.ObserverID, "`number` by which the ensemble knows this server; none of its servers may have it")
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
	if f.from == "" {
		return usagef("which ensemble? Name its servers with --from host:quorumport,…, or its zoo.cfg")
	}
	old, err := mirror.Describe(f.from, f.clients)
	if err != nil {
		return err
	}
	return runServer(ctx, &f.server, stderr, func(cfg *server.Config) (started, error) {
		follow, err := f.learner(cfg, old)
		if err != nil {
			return nil, err
		}
		m := takeover.New(takeover.Config{Learner: follow, Old: old, Serve: f.serve == serveAll, ReadsOnly: f.serve == serveReadOnly, Logger: cfg.Logger})
		cfg.Env.Mirror = m
		dir := cfg.DataDir
		return func(ctx context.Context, s *server.Server) (<-chan struct{}, error) {
			return m.Serve(ctx, dir, s.Node())
		}, nil
	})
}

// learner returns how to connect to the ensemble's leader.
func (f *mirrorFlags) learner(cfg *server.Config, old *mirror.Old) (learner.Config, error) {
	c := learner.Config{
		Addrs: old.QuorumAddrs(), ID: f.id, MaxRequest: cfg.Limits.JuteMaxBuffer,
		Limits: zkfiles.Limits{MaxField: migrate.MaxField(cfg)},
	}
	if cfg.Znodes.Emulate353TTL {
		c.Policy = tree.Emulate353TTL
	}
	var err error
	if f.connect.sasl != "" {
		if c.User, c.Password, err = credentials("--sasl", f.connect.sasl); err != nil {
			return c, err
		}
	} else if section, is := old.QuorumSASL(); is {
		return c, usagef("the ensemble's servers authenticate each other: name a user of their JAAS file (section %s) with --sasl", section)
	}
	c.TLS, err = f.connect.tlsConfig()
	if err == nil && c.TLS == nil && old.QuorumTLS() {
		err = usagef("the ensemble's servers use TLS between each other: name a certificate that they trust with --tls-cert, and theirs with --tls-ca")
	}
	return c, err
}

// mirrorCommands serves zkgo mirror status and its like on a server that was started without
// zkgo mirror, if its state has a mirror.
func mirrorCommands(cfg server.Config, s *server.Server) started {
	state, _, _ := s.Node().Mirroring().State()
	switch state.Phase {
	case raftfsm.MirrorNone, raftfsm.MirrorDone:
		return nil
	case raftfsm.MirrorFollowing:
		cfg.Logger.Warn("the state is that of another ensemble, which zkgo server does not follow: no client is served; start zkgo mirror instead")
	case raftfsm.MirrorFenced:
		cfg.Logger.Warn("the state was given back to ZooKeeper: no client is served; zkgo mirror resume serves them again")
	case raftfsm.MirrorOpen:
		cfg.Logger.Info("the way back to ZooKeeper is open: zkgo mirror finalize ends that")
	}
	m := takeover.New(takeover.Config{Logger: cfg.Logger})
	return func(ctx context.Context, s *server.Server) (<-chan struct{}, error) {
		return m.Serve(ctx, cfg.DataDir, s.Node())
	}
}
