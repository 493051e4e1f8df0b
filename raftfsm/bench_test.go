package raftfsm

import (
	"fmt"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
)

// tokens is a Handler that returns a token for every command applied.
type tokens struct {
	free chan struct{}
	out  chan outcome
}

func (h *tokens) Applied(a *Applied) {
	if a.Attached != nil {
		h.out <- outcome{attached: *a.Attached}
		return
	}
	if a.Code != proto.Ok {
		panic(a.Code)
	}
	h.free <- struct{}{}
}
func (h *tokens) BatchDone()               {}
func (h *tokens) Lost(error)               {}
func (h *tokens) Jumped()                  {}
func (h *tokens) Live(dst []int64) []int64 { return dst }
func (h *tokens) StateChanged(Status)      {}

// BenchmarkCommit measures Propose to Applied: setData of 100 bytes on 1,000
// znodes, with a number of commands in flight.
func BenchmarkCommit(b *testing.B) {
	configs := map[string]func() Config{
		"memory": memoryConfig,
		"wal":    func() Config { return diskConfig(b, raftlog.WAL) },
		"bolt":   func() Config { return diskConfig(b, raftlog.Bolt) },
	}
	for _, name := range []string{"memory", "wal", "bolt"} {
		for _, depth := range []int{1, 64, 4096} {
			b.Run(fmt.Sprintf("%s/%d", name, depth), func(b *testing.B) { benchmarkCommit(b, configs[name](), depth) })
		}
	}
}

func benchmarkCommit(b *testing.B, cfg Config, depth int) {
	h := &tokens{free: make(chan struct{}, depth), out: make(chan outcome, 1)}
	cfg.Handler = h
	n, err := startNode(cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer n.Close()
	if err := n.Propose(&command.Command{Kind: command.KindAttach, Timeout: int32(time.Hour.Milliseconds())}); err != nil {
		b.Fatal(err)
	}
	s := (<-h.out).attached
	const nodes = 1000
	sets := make([]command.Command, nodes)
	for i := range nodes {
		path := fmt.Sprintf("/node-%d", i)
		c := create(s, path, 0)
		if err := n.Propose(&c); err != nil {
			b.Fatal(err)
		}
		if i >= depth {
			<-h.free
		}
		sets[i] = set(s, path, make([]byte, 100))
	}
	for range min(depth, nodes) {
		<-h.free
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if err := n.Propose(&sets[i%nodes]); err != nil {
			b.Fatal(err)
		}
		if i >= depth-1 {
			<-h.free
		}
	}
	for range min(depth-1, b.N) {
		<-h.free
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

// BenchmarkStart measures Start to the first session, on fresh directories.
func BenchmarkStart(b *testing.B) {
	for name, cfg := range map[string]func() Config{
		"memory": memoryConfig,
		"wal":    func() Config { return diskConfig(b, raftlog.WAL) },
		"bolt":   func() Config { return diskConfig(b, raftlog.Bolt) },
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				c := cfg()
				b.StartTimer()
				r := start(b, c)
				r.attach(time.Minute)
				b.StopTimer()
				r.close()
				b.StartTimer()
			}
		})
	}
}
