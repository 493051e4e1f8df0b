package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/bench"
	"github.com/zkgo/zkgo/internal/cli/diagnose"
	"github.com/zkgo/zkgo/internal/spelling"
	"github.com/zkgo/zkgo/proto"
)

// benchFlags contains the flags of zkgo bench.
type benchFlags struct {
	bench.Config
	connect connectFlags
	runs    int
	output  string
	quiet   bool
}

func benchCommand() *cobra.Command {
	f := benchFlags{}
	cmd := &cobra.Command{
		Use:   "bench [workload...]",
		Short: "Benchmark zkgo or ZooKeeper servers",
		Long: `Run workloads against servers that speak the ZooKeeper protocol, and measure
throughput and latency.

Workloads (default: get, set, mixed and create):

` + describeWorks() + `
Each connection keeps --window requests in flight. A window of 1 measures the latency
of the server; with a large window, requests mostly wait in queues.

Every workload writes to the servers: even a workload that only reads first creates
znodes. Each run uses its own znode below --root and deletes it afterwards, together
with --root if the run created it. With --pid, the results include the servers' CPU
time per operation and their memory (Linux only). Progress is shown on a terminal.`,
		Example: `  zkgo bench
  zkgo bench set -c 64 -w 64 --pid $(pidof zkgo)
  zkgo bench mixed --writes 0.3 -c 64 -s host1:2181,host2:2181,host3:2181
  zkgo bench lock-shared -c 8 --duration 30s -o json`,
		ValidArgs: bench.Names(),
		RunE: func(cmd *cobra.Command, works []string) error {
			if len(works) == 0 {
				works = []string{"get", "set", "mixed", "create"}
			}
			if err := f.connect.resolve(cmd); err != nil {
				return err
			}
			return runBench(cmd.Context(), &f, works, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	f.connect.register(flags, benchSettings)
	flags.IntVarP(&f.Conns, "conns", "c", 1, "connections, spread over the servers")
	flags.IntVarP(&f.Window, "window", "w", 1, "requests in flight on each connection")
	flags.IntVar(&f.Size, "size", 100, "`bytes` of a value")
	flags.IntVarP(&f.Nodes, "nodes", "n", 1000, "znodes to read and write")
	flags.Float64Var(&f.Writes, "writes", 0.1, "`fraction` of writes in mixed, above 0 and up to 1")
	flags.IntVar(&f.Ops, "ops", 10, "operations in a multi")
	flags.DurationVarP(&f.Duration, "duration", "d", 0, "how long to measure (default 5s)")
	flags.DurationVar(&f.Warmup, "warmup", 0, "how long to run before measuring (default 500ms)")
	flags.StringVar(&f.Root, "root", "", "`path` of the parent znode (default /zkgo-bench)")
	flags.BoolVar(&f.Keep, "keep-znodes", false, "do not delete the runs' znodes")
	flags.Uint64Var(&f.Seed, "seed", 0, "seed of the random choices")
	flags.IntSliceVar(&f.PIDs, "pid", nil, "the servers' process `ids`")
	flags.IntVar(&f.runs, "runs", 1, "how often to run each workload, in turns")
	outputVar(flags, &f.output, "csv")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	return cmd
}

// unknownWork returns an error that suggests the most similar workload.
func unknownWork(word string) error {
	if near := spelling.Similar(word, bench.Names()); near != "" {
		return usagef("no such workload: %q. Did you mean %s?", word, near)
	}
	return usagef("no such workload: %q; there are %s", word, strings.Join(bench.Names(), ", "))
}

func describeWorks() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, w := range bench.Works() {
		fmt.Fprintf(table, "  %s\t%s\n", w.Name, w.About) //nolint:errcheck // writes to memory
	}
	table.Flush() //nolint:errcheck // writes to memory
	return b.String()
}

func runBench(ctx context.Context, f *benchFlags, works []string, stdout, stderr io.Writer) error {
	if err := f.complete(); err != nil {
		return err
	}
	for _, work := range works {
		if !slices.Contains(bench.Names(), work) {
			return unknownWork(work)
		}
	}
	if !f.quiet {
		f.announce(stderr)
	}
	var results []*bench.Result
	for range f.runs {
		for _, work := range works {
			cfg := f.Config
			cfg.Work = work
			if !f.quiet && isTerminalOut(stderr) {
				cfg.Progress = func(s bench.Sample) {
					fmt.Fprintf(stderr, "%s %4.0fs %10.0f ops/s %d errors\n", work, s.Elapsed.Seconds(), s.Rate, s.Errors) //nolint:errcheck // progress only
				}
			}
			result, err := bench.Run(ctx, cfg)
			if err != nil {
				return f.explain(ctx, err)
			}
			results = append(results, result)
			if err := f.show(stdout, result, len(results) == 1); err != nil {
				return err
			}
		}
	}
	if f.output == "csv" {
		return bench.WriteCSV(stdout, results)
	}
	return nil
}

// announce tells the user how the benchmark will affect the servers.
func (f *benchFlags) announce(stderr io.Writer) {
	after := "deletes its znodes at the end"
	if f.Keep {
		after = "keeps its znodes (--keep-znodes)"
	}
	fmt.Fprintf(stderr, "zkgo bench puts load on %s: it writes below %s, and %s.\n", //nolint:errcheck // a notice
		strings.Join(f.Servers, ", "), cmp.Or(f.Root, "/zkgo-bench"), after)
	if len(f.PIDs) == 0 && f.output == "text" {
		fmt.Fprintln(stderr, "To see CPU/op and RSS of servers on this machine, use --pid.") //nolint:errcheck // a notice
	}
}

// explain adds an explanation if err means that a server can't be reached.
func (f *benchFlags) explain(ctx context.Context, err error) error {
	terms := diagnose.ClientTerms()
	terms.Auth, terms.Name = "--auth", "connect by a name that is in the certificate"
	addr := f.failed(err)
	if answersTLS(err) {
		err = fmt.Errorf("%w: %w", client.ErrTLSRequired, err)
	}
	return diagnose.Explain(ctx, addr, f.TLS, terms, err)
}

// answersTLS reports whether the answer to the handshake was an alert of TLS: 0x15 0x03 looks like
// the length of a frame.
func answersTLS(err error) bool {
	var length uint32
	_, rest, found := strings.Cut(err.Error(), "opening a session: a frame of ")
	_, bad := fmt.Sscanf(rest, "%d bytes", &length)
	return found && bad == nil && length>>16 == 0x1503
}

// failed returns the server to which an error belongs, or "" if it doesn't say.
func (f *benchFlags) failed(err error) string {
	var network *net.OpError
	var name *net.DNSError
	for _, server := range f.Servers {
		host, _, _ := net.SplitHostPort(server)
		if strings.Contains(err.Error(), server+": ") || errors.As(err, &name) && name.Name == host {
			return server
		}
	}
	if errors.As(err, &network) && network.Addr != nil {
		return network.Addr.String()
	}
	return ""
}

// show prints the result of a run.
func (f *benchFlags) show(w io.Writer, result *bench.Result, first bool) error {
	switch f.output {
	case "json":
		return json.NewEncoder(w).Encode(result)
	case "text":
		if first {
			if err := bench.WriteTextHead(w); err != nil {
				return err
			}
		}
		return result.WriteText(w)
	}
	return nil
}

// complete checks the flags that aren't part of Config, and fills in derived values.
func (f *benchFlags) complete() error {
	if f.runs < 1 {
		return usagef("--runs %d: there must be at least one", f.runs)
	}
	if f.Size == 0 {
		f.Size = -1 // zero would select Config's default
	}
	if f.Writes == 0 {
		return usagef("--writes 0: use the workload get")
	}
	if values, origin := f.connect.settings.lookup("sasl"); origin != "" && len(values) > 0 {
		return usagef("%s has SASL credentials, which zkgo bench does not support: use --auth", origin)
	}
	hosts, chroot, _ := strings.Cut(f.connect.server, "/")
	if f.Servers = strings.Split(hosts, ","); chroot != "" {
		f.Root = "/" + chroot + cmp.Or(f.Root, "/zkgo-bench")
	}
	f.SessionTimeout = f.connect.sessionTimeout
	for _, a := range f.connect.auth {
		scheme, secret, err := credentials("--auth", a)
		if err != nil {
			return usagef("%w", err)
		}
		f.Auth = append(f.Auth, proto.AuthPacket{Scheme: scheme, Auth: []byte(secret)})
	}
	var err error
	f.TLS, err = f.connect.tlsConfig()
	return err
}
