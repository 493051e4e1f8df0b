package main

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/zkgo/zkgo/internal/bench"
)

// longest is the largest latency that the histogram can record.
const longest = 10 * time.Minute

// meter counts and times the operations between begin and end.
type meter struct {
	recorders []recorder // one for each connection
	counting  atomic.Bool
	began     time.Time
	took      time.Duration

	mu     sync.Mutex
	errors map[string]int64
}

// recorder stores one connection's latencies, in microseconds with three digits.
type recorder struct {
	mu   sync.Mutex
	hist *hdrhistogram.Histogram
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, longest.Microseconds(), 3)
}

func (m *meter) prepare(conns int) {
	m.recorders, m.errors = make([]recorder, conns), make(map[string]int64)
	for i := range m.recorders {
		m.recorders[i].hist = newHistogram()
	}
}

func (m *meter) begin() {
	m.began = time.Now()
	m.counting.Store(true)
}

func (m *meter) end() {
	m.counting.Store(false)
	m.took = time.Since(m.began)
}

// done records an operation of a connection.
func (m *meter) done(conn int, took time.Duration) {
	if !m.counting.Load() {
		return
	}
	r := &m.recorders[conn]
	r.mu.Lock()
	_ = r.hist.RecordValue(min(max(took, time.Microsecond), longest).Microseconds())
	r.mu.Unlock()
}

func (m *meter) failure(err error) {
	if m.counting.Load() {
		m.mu.Lock()
		m.errors[err.Error()]++
		m.mu.Unlock()
	}
}

// result sums up the recorders. It must be called after all recording has ended.
func (m *meter) result(cfg *bench.Config) *bench.Result {
	all := newHistogram()
	for i := range m.recorders {
		all.Merge(m.recorders[i].hist)
	}
	us := func(q float64) float64 { return float64(all.ValueAtQuantile(q)) }
	r := &bench.Result{
		Work: cfg.Work, Servers: cfg.Servers, Conns: cfg.Conns, Window: cfg.Window, Size: cfg.Size, Nodes: cfg.Nodes,
		Seconds: m.took.Seconds(), Ops: all.TotalCount(), OpsPerSecond: float64(all.TotalCount()) / m.took.Seconds(), Errors: m.errors,
		Latency: bench.Latency{Mean: all.Mean(), P50: us(50), P90: us(90), P99: us(99), P999: us(99.9), Max: float64(all.Max())},
	}
	if cfg.Work == "multi" {
		r.Figures = []bench.Figure{{Name: "sub-operations", Value: math.Round(r.OpsPerSecond * float64(cfg.Ops)), Unit: "ops/s"}}
	}
	return r
}
