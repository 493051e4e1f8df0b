package bench

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longest is the longest time that a histogram distinguishes. Longer times count as
// longest.
const longest = 10 * time.Minute

// newHistogram returns a histogram of microseconds with three significant digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, longest.Microseconds(), 3)
}

// recorder stores the measurements of some of the connections.
type recorder struct {
	mu   sync.Mutex
	hist *hdrhistogram.Histogram
	ops  atomic.Int64
}

func (r *recorder) add(took time.Duration) {
	r.ops.Add(1)
	r.mu.Lock()
	_ = r.hist.RecordValue(min(max(took, time.Microsecond), longest).Microseconds())
	r.mu.Unlock()
}

// maxRecorders limits the memory for histograms with e.g. ten thousand connections.
const maxRecorders = 64

// meter counts and times operations between begin and end.
type meter struct {
	recorders []recorder
	failed    atomic.Int64
	counting  atomic.Bool
	over      atomic.Bool // end was called: send no new requests

	pids       []int
	began      time.Time
	took       time.Duration
	before, at usage

	mu      sync.Mutex
	errors  map[string]int64
	figures []Figure
}

func newMeter(conns int, pids []int) *meter {
	m := &meter{recorders: make([]recorder, min(conns, maxRecorders)), pids: pids, errors: make(map[string]int64)}
	for i := range m.recorders {
		m.recorders[i].hist = newHistogram()
	}
	return m
}

func (m *meter) begin() (err error) {
	m.before, err = usageOf(m.pids)
	m.began = time.Now()
	m.counting.Store(true)
	return err
}

// end may be called before begin if a run ends early. Nothing is counted then.
func (m *meter) end() (err error) {
	m.over.Store(true)
	if !m.counting.Swap(false) {
		return nil
	}
	m.took = time.Since(m.began)
	m.at, err = usageOf(m.pids)
	return err
}

// done counts an operation of connection i.
func (m *meter) done(i int, took time.Duration) {
	if m.counting.Load() {
		m.recorders[i%len(m.recorders)].add(took)
	}
}

// failure counts n operations that failed for the same reason.
func (m *meter) failure(reason string, n int64) {
	if n == 0 || !m.counting.Load() {
		return
	}
	m.failed.Add(n)
	m.mu.Lock()
	m.errors[reason] += n
	m.mu.Unlock()
}

// figure adds a number to the result's figures.
func (m *meter) figure(f Figure) {
	m.mu.Lock()
	m.figures = append(m.figures, f)
	m.mu.Unlock()
}

func (m *meter) ops() (n int64) {
	for i := range m.recorders {
		n += m.recorders[i].ops.Load()
	}
	return n
}

// watch reports progress until done is closed.
func (m *meter) watch(report func(Sample), done <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var ops, failed int64
	last := time.Now()
	for {
		select {
		case <-done:
			return
		case now := <-tick.C:
			if !m.counting.Load() {
				last = now
				continue
			}
			n, f := m.ops(), m.failed.Load()
			report(Sample{Elapsed: now.Sub(m.began), Rate: float64(n-ops) / now.Sub(last).Seconds(), Errors: f - failed})
			ops, failed, last = n, f, now
		}
	}
}

// result computes the Result. The caller must not record anything afterwards.
func (m *meter) result(cfg *Config) *Result {
	all := newHistogram()
	for i := range m.recorders {
		all.Merge(m.recorders[i].hist)
	}
	ops := m.ops()
	us := func(q float64) float64 { return float64(all.ValueAtQuantile(q)) }
	r := &Result{
		Work: cfg.Work, Servers: cfg.Servers, Conns: cfg.Conns, Window: cfg.Window, Size: cfg.Size, Nodes: cfg.Nodes,
		Seconds: m.took.Seconds(), Ops: ops, Errors: m.errors, Figures: m.figures,
		Latency: Latency{Mean: all.Mean(), P50: us(50), P90: us(90), P99: us(99), P999: us(99.9), Max: float64(all.Max())},
	}
	if m.took > 0 {
		r.OpsPerSecond = float64(ops) / m.took.Seconds()
	}
	if len(m.pids) > 0 {
		r.RSS = m.at.rss
		if ops > 0 {
			cpu := float64((m.at.cpu - m.before.cpu).Microseconds()) / float64(ops)
			r.CPUPerOp = &cpu
		}
	}
	return r
}
