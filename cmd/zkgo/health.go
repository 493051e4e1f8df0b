package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/diagnose"
	"github.com/zkgo/zkgo/internal/ops/health"
)

// healthFlags holds the flags of zkgo health.
type healthFlags struct {
	serverFlags
	server, word   string
	secure, live   bool
	timeout, await time.Duration
}

// healthEvery is the pause between two attempts while the command waits for a server.
const healthEvery = 250 * time.Millisecond

func healthCommand() *cobra.Command {
	var f healthFlags
	cmd := &cobra.Command{
		Use:   "health [zoo.cfg]",
		Short: "Ask a running server whether it serves clients",
		Long: `Ask a server on its client port, that of a zoo.cfg with the flags and variables of
zkgo server, or --server, whether it serves clients, and print its mode. The exit code
is 0 if it does and 1 if it does not: because no process listens, because it has no quorum,
or because it does not answer in time.

It sends srvr, which every server answers whatever its 4lw.commands.whitelist. With --wait it
asks again until the server serves: what a script that restarts servers one after
another needs. --live with --wait asks again until the server answers at all, and
--word with --wait sends the word when the server serves. zoo.cfg - is the standard
input.`,
		Example: `  zkgo health /etc/zkgo/zoo.cfg
  zkgo health --server zk2:2181 --wait 2m
  zkgo health --word mntr --server zk2:2181`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.timeout <= 0 {
				return usagef("--timeout %v: want a duration above 0", f.timeout)
			}
			if f.await < 0 {
				return usagef("--wait %v: want a duration of 0 or more", f.await)
			}
			if err := f.name(cmd, args); err != nil {
				return err
			}
			for _, name := range []string{"server", "secure"} {
				if f.config != "" && cmd.Flags().Changed(name) {
					return usagef("%s names the server, and so does --%s: give one of them", f.config, name)
				}
			}
			if f.word != "" && len(f.word) != 4 {
				return usagef("--word %q: want four letters, as mntr", f.word)
			}
			target, err := f.target()
			if err != nil {
				return err
			}
			answer, err := f.ask(cmd.Context(), target)
			if err != nil {
				return f.explain(cmd.Context(), target, err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), answer)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.server, "server", "s", "localhost:2181", "`host:port` for clients, if there is no zoo.cfg")
	flags.BoolVar(&f.secure, "secure", false, "speak TLS with --server, whose certificate is not checked")
	flags.BoolVar(&f.live, "live", false, "it is enough that the server answers, with a quorum or without")
	flags.DurationVar(&f.timeout, "timeout", 5*time.Second, "how long one question may take")
	flags.DurationVar(&f.await, "wait", 0, "ask again until the server serves, for at most this `duration`")
	flags.StringVar(&f.word, "word", "", "print the answer to a four-letter `word` instead")
	cmd.MarkFlagsMutuallyExclusive("word", "live")
	f.reading(flags, "for the data, as of zkgo server")
	f.port(flags, "for clients, as of zkgo server")
	// We use the server's flags, so that a script can query a server that it started with
	// ZKGO_SERVER_FLAGS.
	f.logging(flags)
	for _, name := range []string{"log-format", "log-level"} {
		flags.Lookup(name).Hidden = true
	}
	for _, server := range []string{"server", "secure"} {
		for _, name := range []string{"config", "data-dir", "client-port", "set"} {
			cmd.MarkFlagsMutuallyExclusive(server, name)
		}
	}
	return cmd
}

// target returns the port to query: that of the server with the configuration of the
// flags, or without such flags that of --server.
func (f *healthFlags) target() (health.Target, error) {
	if f.config != "" || f.dataDir != "" || f.clientPort != unset || len(f.set) > 0 {
		c, err := f.zooCfg()
		if err != nil {
			return health.Target{}, err
		}
		return health.Of(c)
	}
	t := health.Target{Addr: f.server}
	if f.secure {
		t.TLS = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // requested by the flag
	}
	return t, nil
}

// explain explains why a server gave no answer, in the same words as all commands that
// connect.
func (f *healthFlags) explain(ctx context.Context, t health.Target, err error) error {
	terms := diagnose.ClientTerms()
	terms.UseTLS, terms.NoTLS = "use --secure, or name its zoo.cfg", "leave --secure out"
	terms.Cert = "the key store (ssl.keyStore.location) of its zoo.cfg, --set or SERVER_JVMFLAGS"
	terms.Closed = "it may expect TLS (--secure), refuse more connections from here, or not be a port for ZooKeeper clients"
	if t.TLS != nil {
		terms.Closed = "the port may not speak TLS, or require a client certificate"
	}
	switch text := err.Error(); {
	case errors.Is(err, health.ErrNotServing):
		err = fmt.Errorf("%w: %w", diagnose.ErrNotServing, err)
	case strings.Contains(text, "closed the connection without an answer"), strings.Contains(text, "closes the connection without a word"):
		err = fmt.Errorf("%w: %w", err, io.EOF)
	case strings.Contains(text, `"\x15\x03`): // an alert of TLS as the answer
		err = fmt.Errorf("%w: %w", client.ErrTLSRequired, err)
	}
	return diagnose.Explain(ctx, t.Addr, t.TLS, terms, err)
}

// ask queries the server once, or until the server serves or is live.
func (f *healthFlags) ask(ctx context.Context, t health.Target) (string, error) {
	if f.await == 0 {
		return f.once(ctx, t)
	}
	waiting, cancel := context.WithTimeout(ctx, f.await)
	defer cancel()
	if f.live {
		return "live", health.AwaitLive(waiting, t, f.timeout, healthEvery)
	}
	mode, err := health.Await(waiting, t, f.timeout, healthEvery)
	if err == nil && f.word != "" {
		return f.once(ctx, t)
	}
	return modeLine(mode, err)
}

// once asks the server one question.
func (f *healthFlags) once(ctx context.Context, t health.Target) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	switch {
	case f.word != "":
		return health.Word(ctx, t, f.word)
	case f.live:
		return "live", health.Live(ctx, t)
	}
	return modeLine(health.Serving(ctx, t))
}

// modeLine formats a mode as zkServer.sh status does.
func modeLine(mode string, err error) (string, error) { return "Mode: " + mode, err }
