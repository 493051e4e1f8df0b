package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/internal/control"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
)

// testFlags contains the flags of zkgo testserver.
type testFlags struct {
	config            string
	servers           int
	host              string
	port, controlPort int
	tick              time.Duration
	set               []string
	onDisk, noPings   bool
	quiet, stay       bool
	parent            int
}

func testserverCommand() *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use:   "testserver [zoo.cfg]",
		Short: "Run a server for tests, with fault injection and a clock that the test controls",
		Long: `Run an in-memory server, or an ensemble, for tests.

When it is ready, it prints one line of JSON to stdout: the address for clients
(connectString), the URL of the HTTP API that controls faults, time and state
(control), and the process id (pid). It logs to stderr. docs/guide/testserver.md
documents the API; GET /v1 lists the endpoints.

The test server exits with the process that started it: when its parent exits,
or, if stdin is a pipe, when the pipe is closed. A program that gives it a pipe
must keep the write end open. SIGINT, SIGTERM and POST /v1/stop end it, too.

A zoo.cfg and --set configure the servers. Settings for directories, addresses
and disks are ignored. Without a zoo.cfg, all four-letter words are enabled and
the number of connections is unlimited.`,
		Example: `  zkgo testserver
  zkgo testserver --servers 3 --tick 500ms
  zkgo testserver --port 2181 --set enforceQuota=true
  zkgo testserver --stay /etc/zookeeper/zoo.cfg`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if err := named(cmd, "the test server exits when the standard input is closed", args[0]); err != nil {
					return err
				}
				f.config = args[0]
			}
			return runTestserver(cmd.Context(), &f, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&f.servers, "servers", 1, "`number` of servers; more than one form an ensemble")
	flags.StringVar(&f.host, "host", "127.0.0.1", "`address` to listen on; use 0.0.0.0 in a container (the HTTP API has no password)")
	portVar(flags, &f.port, "port", 0, "`port` for clients; the next servers use the ports after it (default: free ports)")
	portVar(flags, &f.controlPort, "control-port", 0, "`port` of the HTTP API (default: a free port)")
	flags.DurationVar(&f.tick, "tick", 0, "length of a tick; session timeouts are 2 to 20 ticks (zoo.cfg: tickTime; default 2s)")
	flags.StringArrayVar(&f.set, "set", nil, "set a `key=value` of zoo.cfg; may be repeated")
	flags.BoolVar(&f.onDisk, "on-disk", false, "keep the data in a temporary directory, to test servers that crash and restart")
	flags.BoolVar(&f.noPings, "without-pings", false, "when the clock advances, expire the sessions of connected clients that send nothing")
	flags.BoolVar(&f.quiet, "quiet", false, "log only injected faults, not the servers' own messages")
	flags.BoolVar(&f.stay, "stay", false, "keep running when stdin is closed or the parent exits")
	flags.IntVar(&f.parent, "parent", 0, "exit when the process with this `pid` exits (default: the parent)")
	return cmd
}

// runTestserver runs a test server until it's told to stop or its parent has ended.
func runTestserver(ctx context.Context, f *testFlags, stdin io.Reader, stdout, stderr io.Writer) error {
	opts, err := f.options()
	if err != nil {
		return err
	}
	log := &lineLog{w: stderr}
	cfg := control.Config{Host: f.host, ControlPort: f.controlPort, Options: opts, Log: log.line}
	switch {
	case f.servers < 1:
		return usagef("--servers %d: want 1 or more", f.servers)
	case f.host == "" || net.ParseIP(f.host) == nil && f.host != "localhost":
		return usagef("--host %q: want an IP address, e.g. 127.0.0.1, or 0.0.0.0 for all", f.host)
	case f.servers > 1:
		cfg.Servers = f.servers
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !f.stay {
		if err := watchParent(ctx, cancel, f.parent, stdin); err != nil {
			return err
		}
	}
	t, err := control.Start(cfg)
	if err != nil {
		return testserverError(err)
	}
	line, err := json.Marshal(t.Ready())
	if err == nil {
		_, err = fmt.Fprintf(stdout, "%s\n", line)
	}
	if err == nil {
		select {
		case <-t.Stopped():
			log.line("zkgo testserver: exiting: POST /v1/stop")
		case <-ctx.Done():
			log.line("zkgo testserver: exiting: " + context.Cause(ctx).Error())
		}
	}
	return errors.Join(err, t.Close())
}

// testserverError adds the flag that helps if a port is unavailable.
func testserverError(err error) error {
	for _, cause := range []error{syscall.EADDRINUSE, syscall.EACCES} {
		if strings.Contains(err.Error(), "listen tcp") && strings.Contains(err.Error(), cause.Error()) {
			return fmt.Errorf("%w; choose another with --port or --control-port, or leave them out for free ones", err)
		}
	}
	return err
}

// options converts the flags to options of the test server.
func (f *testFlags) options() ([]zktest.Option, error) {
	cfg, port, err := f.serverConfig()
	if err != nil {
		return nil, err
	}
	opts := []zktest.Option{zktest.WithConfig(func(c *server.Config) { *c = cfg }), zktest.WithAddr(net.JoinHostPort(f.host, strconv.Itoa(port)))}
	for _, o := range []struct {
		on  bool
		opt zktest.Option
	}{
		{f.tick != 0, zktest.WithTick(f.tick)},
		{f.onDisk, zktest.OnDisk()},
		{f.noPings, zktest.WithoutPings()},
		{!f.quiet, zktest.WithLogs()},
	} {
		if o.on {
			opts = append(opts, o.opt)
		}
	}
	return opts, nil
}

// forTests returns the settings that differ from a server's defaults if there is no
// zoo.cfg.
func forTests() []string {
	return []string{"maxClientCnxns=0", "4lw.commands.whitelist=*", "extendedTypesEnabled=true", "admin.enableServer=false"}
}

// serverConfig returns the configuration from zoo.cfg and --set, and the client port,
// which the test server opens itself.
func (f *testFlags) serverConfig() (cfg server.Config, port int, err error) {
	sf := serverFlags{config: f.config, clientPort: unset, set: f.set,
		dataDir: os.TempDir(),                        // required, but nothing is written there
		options: []zoocfg.Option{zoocfg.WithMyID(1)}} // so that no myid file is read from there
	if f.config == "" {
		sf.set = append(forTests(), f.set...)
		sf.getenv = func(string) string { return "" } // a test depends on its own flags only
	}
	z, err := sf.zooCfg()
	if err != nil {
		return cfg, 0, err
	}
	if z.Distributed() {
		return cfg, 0, fmt.Errorf("%s lists servers; use --servers to set their number", f.config)
	}
	if cfg, err = translate(z); err != nil {
		return cfg, 0, err
	}
	port = f.port
	if port == 0 && f.config != "" {
		port = max(z.ClientPort, 0)
	}
	if !asksFor(f.set, "admin.") { // enabled by default, and all servers would use the same port
		cfg.Admin = nil
	}
	cfg.ClientAddr = ""
	return cfg, port, nil
}

// asksFor reports whether --set was given for a key with this prefix.
func asksFor(sets []string, prefix string) bool {
	for _, kv := range sets {
		if strings.HasPrefix(kv, prefix) {
			return true
		}
	}
	return false
}
