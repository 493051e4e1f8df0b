package ensemble

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// These are benchmarks. We judge nothing here and don't run them as tests.
var (
	runs     = flag.Int("runs", 5, "how often each side of a measurement is measured")
	runsFor  = flag.Duration("for", 4*time.Second, "how long each run of the TLS measurement takes")
	idlesFor = flag.Duration("idle", time.Minute, "how long the measurement of lone writes takes")
)

// cpu returns the processor time that the servers of a cluster have used.
func (c *cluster) cpu() time.Duration {
	c.t.Helper()
	var sum time.Duration
	for id, n := range c.nodes {
		var pid int
		if n.java != nil {
			pid = n.java.PID()
		} else {
			pid = n.proc.PID()
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			c.t.Fatalf("server %d: %v", id, err)
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		fields := strings.Fields(rest)
		var user, system int64
		must.Get(fmt.Sscan(fields[11]+" "+fields[12], &user, &system))(c.t)
		sum += time.Duration(user+system) * time.Second / 100 // USER_HZ
	}
	return sum
}

// writer is one connection that sets its own znode.
type writer struct {
	*process.Client
	set proto.SetDataRequest
}

func (c *cluster) writer(id int, name string) *writer {
	c.t.Helper()
	w := &writer{c.admin(id), proto.SetDataRequest{Path: "/" + name, Data: make([]byte, 100), Version: -1}}
	must.Do(c.t, w.Create(w.set.Path, nil, proto.ModePersistent))
	return w
}

// write keeps window writes in flight until end, and returns the duration of each window.
func (w *writer) write(window int, end time.Time) (took []time.Duration, err error) {
	batch := slices.Repeat([]process.Request{{Op: proto.OpSetData, Record: &w.set}}, window)
	for begin := time.Now(); begin.Before(end); {
		if err := w.Send(batch...); err != nil {
			return took, err
		}
		for range batch {
			r, err := w.Receive()
			if err == nil {
				err = r.Err.Err()
			}
			if err != nil {
				return took, err
			}
		}
		now := time.Now()
		took = append(took, now.Sub(begin))
		begin = now
	}
	return took, nil
}

// figures are the results of one run: the writes per second, the median time of a window
// (ms), and the servers' processor time per write (µs).
type figures [3]float64

// load runs all writers once.
func (c *cluster) load(writers []*writer, window int) figures {
	c.t.Helper()
	begin, cpu := time.Now(), c.cpu()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var all []time.Duration
	for _, w := range writers {
		wg.Go(func() {
			took, err := w.write(window, begin.Add(*runsFor))
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
			if err != nil {
				c.t.Error(err)
			}
		})
	}
	wg.Wait()
	n := float64(len(all) * window)
	return figures{n / time.Since(begin).Seconds(), ms(median(all)), float64((c.cpu() - cpu).Microseconds()) / n}
}

func column(all []figures, i int) (one []float64) {
	for _, f := range all {
		one = append(one, f[i])
	}
	return one
}

func median[T int | float64 | time.Duration](all []T) T {
	s := slices.Clone(all)
	slices.Sort(s)
	return s[len(s)/2]
}

// BenchmarkTLS prints the cost of sslQuorum: an ensemble with TLS and one in plaintext alternate
// under the same load, so that other load on the machine affects both equally.
func BenchmarkTLS(b *testing.B) {
	plain, secure := newCluster(b, 3, superDigest), newCluster(b, 3, superDigest, "sslQuorum=true")
	secure.certified(newAuthority(b, "CA"), 1, 2, 3)
	plain.form(1, 2, 3)
	secure.formWith(map[int][]string{1: secure.nodes[1].stores(), 2: secure.nodes[2].stores(), 3: secure.nodes[3].stores()})
	for _, kind := range []struct {
		name            string
		writers, window int // writers at each server
	}{{"1 caller", 0, 1}, {"48 callers", 4, 4}, {"768 callers", 4, 64}} {
		writers := make(map[*cluster][]*writer)
		for _, c := range []*cluster{plain, secure} {
			for id := 1; id <= 3; id++ {
				for i := range kind.writers {
					writers[c] = append(writers[c], c.writer(id, fmt.Sprintf("%s-%d-%d", kind.name, id, i)))
				}
			}
			if kind.writers == 0 {
				writers[c] = []*writer{c.writer(c.follower(), kind.name)}
			}
			c.load(writers[c], kind.window) // warms up
		}
		measured := make(map[*cluster][]figures)
		for run := range *runs {
			order := []*cluster{plain, secure}
			if run%2 == 1 {
				slices.Reverse(order)
			}
			for _, c := range order {
				measured[c] = append(measured[c], c.load(writers[c], kind.window))
			}
		}
		for i, what := range []string{"writes/s", "ms", "µs of CPU per write"} {
			p, s := column(measured[plain], i), column(measured[secure], i)
			ratios := make([]float64, len(p)) // of consecutive runs: other load on the machine changes slowly
			for run := range p {
				ratios[run] = s[run] / p[run]
			}
			b.Logf("%-11s %-20s plain %9.2f  TLS %9.2f  TLS/plain %.2f  %.2f %.2f", kind.name, what, median(p), median(s), median(ratios), p, s)
		}
		for _, all := range writers {
			for _, w := range all {
				_ = w.Close()
			}
		}
	}
}

// follower returns the id of a server that doesn't lead.
func (c *cluster) follower() int {
	c.t.Helper()
	return c.leader()%3 + 1
}

// BenchmarkLoneWrites prints the latency of a lone write through a follower in an otherwise idle
// ensemble, for zkgo and ZooKeeper at the same time, and the processor time that the servers use.
func BenchmarkLoneWrites(b *testing.B) {
	oracle.Need(b)
	ours, theirs := newCluster(b, 3, superDigest), newCluster(b, 3, superDigest)
	theirs.real = true
	clusters := []*cluster{ours, theirs}
	var writers []*writer
	for _, c := range clusters {
		c.form(1, 2, 3)
		w := c.writer(c.follower(), "lone")
		if _, err := w.write(1, time.Now().Add(2*time.Second)); err != nil { // warms up
			b.Fatal(err)
		}
		writers = append(writers, w)
	}
	cpu, took := []time.Duration{ours.cpu(), theirs.cpu()}, make([][]time.Duration, 2)
	for begin := time.Now(); time.Since(begin) < *idlesFor; {
		for i, w := range writers {
			<-time.After(time.Duration(500+rand.IntN(500)) * time.Millisecond) // 1 to 2 s for each
			start := time.Now()
			must.Get(w.Do(proto.OpSetData, &w.set))(b)
			took[i] = append(took[i], time.Since(start))
		}
	}
	for i, c := range clusters {
		slices.Sort(took[i])
		n := len(took[i])
		b.Logf("%-9s %d writes: p50 %.2f ms, p90 %.2f ms, max %.2f ms; CPU of three servers in %v: %v", []string{"zkgo", "ZooKeeper"}[i], n,
			ms(took[i][n/2]), ms(took[i][n*9/10]), ms(took[i][n-1]), *idlesFor, c.cpu()-cpu[i])
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
