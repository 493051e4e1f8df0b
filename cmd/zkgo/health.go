package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/server/health"
	"github.com/zkgo/zkgo/server/zoocfg"
)

// healthFlags holds the flags of zkgo health.
type healthFlags struct {
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
		Long: `Ask a server on its client port, the one that a zoo.cfg names or --server, whether it
serves clients, and print its mode. The exit code is 0 if it does and 1 if it does not:
because nobody listens, because it has no quorum, or because it does not answer in time.

It sends srvr, which has to be in 4lw.commands.whitelist (by default it is). With --wait it
asks again until the server serves: what a script that restarts servers one after
another needs.`,
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
			for _, name := range []string{"server", "secure"} {
				if len(args) > 0 && cmd.Flags().Changed(name) {
					return usagef("%s names the server, and so does --%s: give one of them", args[0], name)
				}
			}
			target, err := f.target(args)
			if err != nil {
				return err
			}
			answer, err := f.ask(cmd.Context(), target)
			if err != nil {
				return f.explain(target, err)
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
	return cmd
}

// target returns the port to query.
func (f *healthFlags) target(args []string) (health.Target, error) {
	if len(args) == 1 {
		c, err := zoocfg.Parse(args[0])
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

// explain adds advice to an error.
func (f *healthFlags) explain(t health.Target, err error) error {
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record) && f.secure:
		return fmt.Errorf("%w: the port does not speak TLS: leave --secure out", err)
	case strings.Contains(err.Error(), "expect TLS") && !f.secure:
		return fmt.Errorf("%w; with TLS use --secure", err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: no server listens there", err)
	case closed(err) && t.TLS != nil:
		return fmt.Errorf("%w: the server closed the connection: the port may not speak TLS, or require a client certificate", err)
	case closed(err):
		return fmt.Errorf("%w: the server closed the connection without an answer: it may expect TLS (--secure), refuse more connections from here, "+
			"or not be a port for ZooKeeper clients", err)
	}
	return err
}

// closed reports that the peer has closed the connection.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// ask queries the server once, or until the server serves.
func (f *healthFlags) ask(ctx context.Context, t health.Target) (string, error) {
	limit := f.timeout
	if f.await > 0 {
		limit = f.await
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch {
	case f.word != "":
		return health.Word(ctx, t, f.word)
	case f.live:
		return "live", health.Live(ctx, t)
	case f.await > 0:
		return modeLine(health.Await(ctx, t, f.timeout, healthEvery))
	}
	return modeLine(health.Serving(ctx, t))
}

// modeLine formats a mode as zkServer.sh status does.
func modeLine(mode string, err error) (string, error) { return "Mode: " + mode, err }
