package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/diagnose"
	"github.com/zkgo/zkgo/internal/ops/health"
)

// healthFlags contains the flags of zkgo health.
type healthFlags struct {
	serverFlags
	connect connectFlags
	word    string
	live    bool
	await   time.Duration
	output  string
}

// healthTimeout is the default of --timeout: shorter than the limit of the image's health
// check, so that the command can say why.
const healthTimeout = 5 * time.Second

// healthEvery is the pause between two attempts while the command waits for a server.
const healthEvery = 250 * time.Millisecond

func healthCommand() *cobra.Command {
	var f healthFlags
	cmd := &cobra.Command{
		Use:   "health [zoo.cfg]",
		Short: "Check whether servers serve clients",
		Long: `Check whether a server serves clients, and print its mode. The server is the one that
zoo.cfg and the flags of zkgo server describe, or the one that --server names. The exit code is 0
if it serves clients, and 1 if no process listens, it has no quorum, or it does not
answer in time. If --server lists several servers, each gets a line of output, and all
have to serve.

The command sends srvr on the client port; 4lw.commands.whitelist can't disable that
word. With --wait, it retries until the server serves, e.g. in a script for rolling
restarts. --live --wait retries until the server answers, even without a quorum.
--word --wait sends the word once the server serves.

Use - as zoo.cfg to read the standard input.`,
		Example: `  zkgo health /etc/zkgo/zoo.cfg
  zkgo health -s zk2:2181 --wait 2m
  zkgo health -s zk1:2181,zk2:2181,zk3:2181 -o json
  zkgo health --word mntr -s zk2:2181`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.await < 0 {
				return usagef("--wait %v: want a duration of 0 or more", f.await)
			}
			if err := f.name(cmd, args); err != nil {
				return err
			}
			for _, name := range serverNames {
				if f.config != "" && cmd.Flags().Changed(name) {
					return usagef("%s and --%s both name the server: use one of them", f.config, name)
				}
			}
			if f.word != "" && len(f.word) != 4 {
				return usagef("--word %q: want four letters, e.g. mntr", f.word)
			}
			targets, err := f.targets(cmd)
			if err != nil {
				return err
			}
			return f.askAll(cmd.Context(), targets, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	f.connect.register(flags, healthSettings)
	f.connect.timeout = healthTimeout
	flags.Lookup("timeout").DefValue = healthTimeout.String()
	outputVar(flags, &f.output)
	flags.BoolVar(&f.live, "live", false, "succeed if the server answers, even without a quorum")
	flags.DurationVar(&f.await, "wait", 0, "retry for at most this `duration` until the server serves")
	flags.StringVar(&f.word, "word", "", "print the answer to this four-letter `word` instead")
	cmd.MarkFlagsMutuallyExclusive("word", "live")
	f.reading(flags, "for the data, as for zkgo server")
	f.port(flags, "for clients, as for zkgo server")
	// We use the server's flags, so that a script can query a server that it started with
	// ZKGO_SERVER_FLAGS.
	f.logging(flags)
	for _, name := range []string{"log-format", "log-level"} {
		flags.Lookup(name).Hidden = true
	}
	for _, server := range serverNames {
		for _, name := range []string{"config", "data-dir", "data-log-dir", "client-port", "set"} {
			cmd.MarkFlagsMutuallyExclusive(server, name)
		}
	}
	return cmd
}

// serverNames are the flags that name servers without a zoo.cfg.
var serverNames = append([]string{"server", "context"}, tlsSettings...)

// targets returns the ports to query: the port of the server that the flags configure, or the ports
// of --server if no flag configures a server.
func (f *healthFlags) targets(cmd *cobra.Command) (targets []health.Target, err error) {
	if f.config != "" || f.dataDir != "" || f.dataLogDir != "" || f.clientPort != unset || len(f.set) > 0 {
		c, err := f.zooCfg()
		if err != nil {
			return nil, err
		}
		t, err := health.Of(c)
		return []health.Target{t}, err
	}
	if err := f.connect.resolve(cmd); err != nil {
		return nil, err
	}
	config, err := f.connect.tlsConfig()
	if err != nil {
		return nil, err
	}
	hosts, _, _ := strings.Cut(f.connect.server, "/")
	for addr := range strings.SplitSeq(hosts, ",") {
		targets = append(targets, health.Target{Addr: strings.TrimSpace(addr), TLS: config})
	}
	return targets, nil
}

// healthAnswer is the JSON form of a server's answer.
type healthAnswer struct {
	Server string `json:"server"`
	Mode   string `json:"mode,omitempty"`
	Live   bool   `json:"live,omitempty"`
	Word   string `json:"word,omitempty"`
	Answer string `json:"answer,omitempty"`
	Error  string `json:"error,omitempty"`
}

// askAll asks all servers at the same time and prints their answers in order.
func (f *healthFlags) askAll(ctx context.Context, targets []health.Target, w io.Writer) error {
	answers, errs := make([]healthAnswer, len(targets)), make([]error, len(targets))
	var wg sync.WaitGroup
	for i, t := range targets {
		wg.Go(func() {
			var err error
			if answers[i], err = f.ask(ctx, t); err != nil {
				errs[i] = f.explain(ctx, t, err)
				answers[i] = healthAnswer{Error: errs[i].Error()}
			}
			answers[i].Server = t.Addr
		})
	}
	wg.Wait()
	for i := range answers {
		if err := f.show(w, &answers[i], len(answers) > 1); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// show prints an answer, and with several servers the one that it comes from. In text
// form, failures are only in the command's error.
func (f *healthFlags) show(w io.Writer, a *healthAnswer, several bool) (err error) {
	switch {
	case f.output == "json":
		return json.NewEncoder(w).Encode(a)
	case a.Error != "":
		return nil
	case several && a.Word != "":
		_, err = fmt.Fprintf(w, "%s:\n", a.Server)
	case several:
		_, err = fmt.Fprintf(w, "%s  ", a.Server)
	}
	switch {
	case err != nil:
	case a.Word != "":
		_, err = fmt.Fprintln(w, a.Answer)
	case a.Live:
		_, err = fmt.Fprintln(w, "live")
	default:
		_, err = fmt.Fprintln(w, "Mode: "+a.Mode) // as zkServer.sh status
	}
	return err
}

// explain explains why a server gave no answer, in the same words as all commands that
// connect.
func (f *healthFlags) explain(ctx context.Context, t health.Target, err error) error {
	terms := diagnose.ClientTerms()
	terms.UseTLS, terms.NoTLS = "use --tls (and --tls-ca if needed), or its zoo.cfg", "omit the --tls flags"
	terms.Cert = "--tls-cert and --tls-key, or its zoo.cfg"
	terms.Closed = "it may expect TLS (--tls), refuse more connections from here, or not be a port for ZooKeeper clients"
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
func (f *healthFlags) ask(ctx context.Context, t health.Target) (healthAnswer, error) {
	if f.await == 0 {
		return f.once(ctx, t)
	}
	waiting, cancel := context.WithTimeout(ctx, f.await)
	defer cancel()
	if f.live {
		return healthAnswer{Live: true}, health.AwaitLive(waiting, t, f.connect.timeout, healthEvery)
	}
	mode, err := health.Await(waiting, t, f.connect.timeout, healthEvery)
	if err == nil && f.word != "" {
		return f.once(ctx, t)
	}
	return healthAnswer{Mode: mode}, err
}

// once asks the server one question.
func (f *healthFlags) once(ctx context.Context, t health.Target) (a healthAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.connect.timeout)
	defer cancel()
	switch {
	case f.word != "":
		a.Word = f.word
		a.Answer, err = health.Word(ctx, t, f.word)
	case f.live:
		a.Live, err = true, health.Live(ctx, t)
	default:
		a.Mode, err = health.Serving(ctx, t)
	}
	return a, err
}
