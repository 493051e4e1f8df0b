package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zkgo/zkgo/internal/listen"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/raftfsm/boltlog"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/formats"
	"github.com/zkgo/zkgo/server/prom"
)

// unset is the value of a port without a flag, because 0 requests any free port.
const unset = -1

// serverFlags contains the flags of zkgo server.
type serverFlags struct {
	config, dataDir     string
	dataLogDir          string
	clientPort          int
	set                 []string
	logFormat, logLevel string
	options             []zoocfg.Option     // additional options for reading the file
	stdin               io.Reader           // the content of the file -
	getenv              func(string) string // nil: os.Getenv
}

func serverCommand() *cobra.Command {
	var f serverFlags
	cmd := &cobra.Command{
		Use:   "server [zoo.cfg]",
		Short: "Run a server",
		Long: `Run a server until it receives SIGINT or SIGTERM.

The configuration is a ZooKeeper zoo.cfg. By default, the server runs standalone,
listens on port 2181 and keeps its data in ./zkgo-data. Flags override the file.

As with zkServer.sh, the server reads ZooKeeper's system properties (-D) from
SERVER_JVMFLAGS and JVMFLAGS. A line of the file overrides the property
zookeeper.KEY. All commands that read a zoo.cfg read these variables and accept
--set.`,
		Example: `  zkgo server
  zkgo server --client-port 2182 --data-dir /var/lib/zkgo
  zkgo server /etc/zookeeper/zoo.cfg --log-format json
  zkgo server --set 4lw.commands.whitelist='*' --set maxClientCnxns=0`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.name(cmd, args); err != nil {
				return err
			}
			if f.config == standardInput {
				return usagef("%s -: the configuration must be a file, because the server writes membership changes to it", cmd.CommandPath())
			}
			return runServer(cmd.Context(), &f, cmd.ErrOrStderr(), nil)
		},
	}
	flags := cmd.Flags()
	f.reading(flags, "for the data (zoo.cfg: dataDir; default ./zkgo-data)")
	f.port(flags, "for clients (zoo.cfg: clientPort; default 2181)")
	f.logging(flags)
	return cmd
}

// reading adds the flags of every command that reads a configuration.
func (f *serverFlags) reading(flags *pflag.FlagSet, dataDir string) {
	f.clientPort = unset
	flags.StringVar(&f.config, "config", "", "configuration `file`, same as the argument")
	flags.StringVar(&f.dataDir, "data-dir", "", "`directory` "+dataDir)
	flags.StringVar(&f.dataLogDir, "data-log-dir", "", "`directory` for the transaction log, if different (zoo.cfg: dataLogDir)")
	f.setting(flags)
}

// setting adds --set.
func (f *serverFlags) setting(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.set, "set", nil, "set a `key=value` of zoo.cfg; may be repeated")
}

// port adds --client-port.
func (f *serverFlags) port(flags *pflag.FlagSet, usage string) {
	portVar(flags, &f.clientPort, "client-port", unset, "`port` "+usage)
	flags.Lookup("client-port").DefValue = "0" // --help doesn't print a default of 0
}

// logging adds the flags of the log.
func (f *serverFlags) logging(flags *pflag.FlagSet) {
	choiceVar(flags, &f.logFormat, "log-format", "", "`format` of the log", "text", "json")
	choiceVar(flags, &f.logLevel, "log-level", "", "`level` of the log", "info", "debug", "warn", "error")
}

// name sets the configuration file from the argument.
func (f *serverFlags) name(cmd *cobra.Command, args []string) error {
	f.stdin = stdin(cmd)
	if len(args) == 0 {
		return nil
	}
	if f.config != "" {
		return usagef("two configuration files: %s and --config %s", args[0], f.config)
	}
	f.config = args[0]
	return nil
}

// An extension adds to the configuration of a server. It returns a function that runs once the server has
// started. That function returns a channel that is closed when it has ended, after ctx.
type (
	extension func(cfg *server.Config) (started, error)
	started   func(ctx context.Context, s *server.Server) (ended <-chan struct{}, err error)
)

// runServer runs a server until ctx ends or the server fails. more may be nil.
func runServer(ctx context.Context, f *serverFlags, stderr io.Writer, more extension) error {
	log, err := newLogger(stderr, f.logFormat, f.logLevel)
	if err != nil {
		return err
	}
	z, err := f.zooCfg()
	if err != nil {
		return err
	}
	for _, w := range z.Warnings {
		log.Warn(w.String())
	}
	if len(z.Ignored) > 0 {
		log.Info("settings without effect", "keys", strings.Join(z.Ignored, " "))
	}
	cfg, err := runnable(z)
	if err != nil {
		return err
	}
	cfg.Logger = log
	var also started
	if more != nil {
		if also, err = more(&cfg); err != nil {
			return err
		}
	}
	collectLater()
	collectBelow(cfg.Limits.MemoryCeiling)
	began := time.Now()
	s, err := server.Start(ctx, cfg)
	if err != nil {
		return startError(ctx, err, cfg)
	}
	stopTrim := trimMemory(s)
	announce(log, s, z)
	if also == nil {
		also = mirrorCommands(cfg, s)
	}
	if also != nil {
		running, stop := context.WithCancel(ctx)
		ended, err := also(running, s)
		if err != nil {
			stop()
			stopTrim()
			return errors.Join(err, s.Close())
		}
		defer func() { <-ended }()
		defer stop()
	}
	err = serve(ctx, s, log, began)
	stopTrim()
	return errors.Join(err, s.Close())
}

// runnable converts a configuration and checks that a server can run with it on this
// machine and as this user. Every command that checks a configuration, or prepares data for a
// server, calls it, so that all commands accept the same configurations.
func runnable(z *zoocfg.Config) (server.Config, error) {
	cfg, err := translate(z)
	if err != nil {
		// Check the directories, too: they are known despite the error.
		directories := server.Config{DataDir: z.DataDir, Log: server.Log{Dir: z.DataLogDir}, NoAutocreate: !z.DataDirAutocreate}
		return server.Config{}, errors.Join(err, directories.CheckDirectories())
	}
	return cfg, cfg.CheckDirectories()
}

// translate is server.LoadConfig for a program that includes every format, every kind of log
// and Prometheus.
func translate(z *zoocfg.Config) (server.Config, error) {
	cfg, err := server.LoadConfig(z.Path, zoocfg.Parsed(z), formats.All())
	cfg.Log.Bolt = boltlog.Format{}
	if cfg.Metrics != nil {
		cfg.Metrics.Handler = prom.Handler
	}
	return cfg, err
}

// startError adds the flag or setting that fixes a start error.
func startError(ctx context.Context, err error, cfg server.Config) error {
	var port *server.ListenError
	var file *fs.PathError
	switch {
	case listen.HostProblem(err) != "":
		return hostError(ctx, err, cfg)
	case errors.As(err, &port) && port.Setting == "clientPort":
		return fmt.Errorf("%w; choose another port with --client-port or clientPort", err)
	case errors.As(err, &port):
		return fmt.Errorf("%w; choose another port with --set %s=PORT or in the configuration file", err, port.Setting)
	case errors.Is(err, server.ErrDataInUse):
		return fmt.Errorf("%w; stop that server, or choose another directory with --data-dir or dataDir", err)
	case errors.As(err, &file) && errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: the data directory is %s, and this process runs as user %d; choose another one with --data-dir or dataDir",
			err, absolute(cfg.DataDir), os.Getuid())
	}
	return err
}

// hostError adds to the error of a start the reasons why we can't listen on a host, with the
// settings that name the hosts. Another port wouldn't help.
func hostError(ctx context.Context, err error, cfg server.Config) error {
	var problems []error
	if ctx.Err() == nil {
		problems = cfg.CheckAddresses(ctx)
	}
	if len(problems) == 0 { // e.g. the name resolves by now
		return fmt.Errorf("%w; %s", err, listen.HostProblem(err))
	}
	for _, p := range problems {
		err = fmt.Errorf("%w; %w", err, p)
	}
	return err
}

// stateError adds the flag that helps if existing zkgo state is in the way.
func stateError(err error) error {
	if errors.Is(err, raftfsm.ErrHasState) {
		return fmt.Errorf("%w with --data-dir or dataDir", err)
	}
	return err
}

// absolute returns the absolute path if possible.
func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// serve waits until the server ends.
func serve(ctx context.Context, s *server.Server, log *slog.Logger, began time.Time) error {
	// A server counts as started once it has read its data and listens. It can't
	// serve before its ensemble has a quorum, and an operator must be able to start
	// the next server.
	tellSystemd(log, daemon.SdNotifyReady, "STATUS=waiting for a quorum")
	defer tellSystemd(log, daemon.SdNotifyStopping, "STATUS=stops")
	ready := s.Ready()
	for {
		select {
		case <-ready:
			log.Info("zkgo serves clients", "after", time.Since(began).Round(time.Millisecond))
			tellSystemd(log, "STATUS=serves clients")
			ready = nil
		case err := <-s.Err():
			return fmt.Errorf("the server has stopped: %w", err)
		case <-ctx.Done():
			log.Info("zkgo stops")
			return nil
		}
	}
}

// tellSystemd notifies the service manager, if it started this process and expects
// notifications.
func tellSystemd(log *slog.Logger, states ...string) {
	if _, err := daemon.SdNotify(false, strings.Join(states, "\n")); err != nil {
		log.Warn("could not notify systemd", "error", err)
	}
}

// zooCfg returns the configuration: the file, if there is one, the environment and the
// flags. Every command that reads a configuration calls it, so that all commands see the same
// settings.
func (f *serverFlags) zooCfg() (*zoocfg.Config, error) {
	sets, err := f.settings()
	if err != nil {
		return nil, err
	}
	opts := append(slices.Clone(f.options), f.environment()...)
	for _, kv := range sets {
		opts = append(opts, zoocfg.WithSet(kv[0], kv[1]))
	}
	if f.config == "" {
		return zoocfg.NoFile(opts...)
	}
	return parseConfig(f.config, f.stdin, opts...)
}

// environment returns the settings in the variables of ZooKeeper's scripts, in the order
// in which zkServer.sh passes them to Java.
func (f *serverFlags) environment() (opts []zoocfg.Option) {
	getenv := f.getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	if name := "ZOO_DATADIR_AUTOCREATE_DISABLE"; getenv(name) != "" {
		opts = append(opts, zoocfg.WithJVMFlags(name, "-Dzookeeper.datadir.autocreate=false"))
	}
	for _, name := range []string{"SERVER_JVMFLAGS", "JVMFLAGS"} {
		opts = append(opts, zoocfg.WithJVMFlags(name, getenv(name)))
	}
	return opts
}

// settings returns the keys and values set by flags.
func (f *serverFlags) settings() ([][2]string, error) {
	var sets [][2]string
	for _, kv := range f.set {
		key, value, ok := strings.Cut(kv, "=")
		if !ok {
			return nil, usagef("--set %q: want key=value", kv)
		}
		sets = append(sets, [2]string{key, value})
	}
	if f.dataDir != "" {
		dir, err := dataDirectory("data-dir", f.dataDir)
		if err != nil {
			return nil, err
		}
		sets = append(sets, [2]string{"dataDir", dir})
	}
	if f.dataLogDir != "" {
		dir, err := dataDirectory("data-log-dir", f.dataLogDir)
		if err != nil {
			return nil, err
		}
		sets = append(sets, [2]string{"dataLogDir", dir})
	}
	if f.clientPort != unset {
		sets = append(sets, [2]string{"clientPort", strconv.Itoa(f.clientPort)})
	}
	return sets, nil
}

// dataDirectory returns the absolute path for --data-dir or --data-log-dir, so that messages
// about it are unambiguous. The directory need not exist yet.
func dataDirectory(flag, name string) (string, error) {
	dir, err := filepath.Abs(name)
	if err != nil {
		return "", usagef("--%s %s: %w", flag, name, err)
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return "", usagef("--%s %s: is a file, want a directory", flag, name)
	}
	return dir, nil
}

// newLogger returns a logger that writes text or JSON.
func newLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var opts slog.HandlerOptions
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usagef("--log-level %q: want debug, info, warn or error%s", level, didYouMean(level, []string{"debug", "info", "warn", "error"}))
	}
	opts.Level = l
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, &opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, &opts)), nil
	}
	return nil, usagef("--log-format %q: want text or json%s", format, didYouMean(format, []string{"text", "json"}))
}
