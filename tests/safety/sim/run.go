package sim

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/checkers"
	"github.com/zkgo/zkgo/tests/kit/history"
	"github.com/zkgo/zkgo/tests/kit/workload"
	"github.com/zkgo/zkgo/tests/safety/summary"
)

// Options describes a run. All fields except Seed, Minutes and Out follow from
// the seed if they are not set.
type Options struct {
	Seed    uint64
	Minutes int // with faults, in fake time
	Layout  Layout
	Faults  []string // kinds; nil: all
	Out     string   // directory for the files of a failed run

	Live io.Writer // receives the trace as it is written; nil: not written
}

// Result is the outcome of a run.
type Result struct {
	Violations []string
	Void       []string // why the run proves nothing, though it broke no guarantee
	Faults     map[string]int
	Seen       map[string]int // counted events, by name
	Ops        int            // answered requests
	Unanswered int            // requests that were never answered
	Elections  int
	Simulated  time.Duration
	History    *history.History
	Trace      string // file with the trace of a run that failed
	Verdict    *checkers.Verdict

	c      *Cluster
	n      *nemesis
	o      Options
	broken int // Violations that no checker found
}

// leastOps is the minimum per minute: a run with fewer proves nothing.
const leastOps = 100

// Run performs a run. It must be called in a testing/synctest bubble; Judge has
// to be called after it and outside the bubble, because checking needs real time.
func Run(o Options) *Result {
	dir, err := tempDir()
	if err != nil {
		return &Result{Violations: []string{err.Error()}}
	}
	defer os.RemoveAll(dir)
	c := NewCluster(dir, o.Seed, o.Layout)
	c.trace.live = o.Live
	n := newNemesis(c, o.Seed)
	n.only(o.Faults)
	rec := history.NewRecorder(nil)
	r := &Result{Faults: n.done, c: c, n: n, o: o}
	c.startAll()
	if !c.await(2*time.Minute, c.whole) {
		r.Violations = append(r.Violations, "the ensemble was not formed within two minutes")
	} else {
		c.workAndTorment(n, rec, o)
	}
	r.Elections = int(c.epoch()) - 1
	c.close()
	r.Simulated = time.Since(c.trace.start)
	r.History = rec.History()
	return r
}

// Judge checks the history, and whether the run proves anything. A run that broke
// a guarantee leaves its trace and its history.
func (r *Result) Judge() {
	if r.c == nil {
		return
	}
	r.c.judge(r.n, r, r.o)
	if len(r.Violations) > 0 {
		r.Trace = r.c.leave(r, r.o)
	}
}

// workAndTorment lets clients work while the nemesis injects faults, and inspects
// the servers' state at the end.
func (c *Cluster) workAndTorment(n *nemesis, rec *history.Recorder, o Options) {
	var ids []int
	for _, h := range c.hosts {
		ids = append(ids, h.id)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		cfg := workload.Config{Seed: o.Seed, Servers: ids, Dial: c.dial, Recorder: rec, Clients: 4, Lockers: 2,
			Timeout: 4 * time.Second, Think: 4 * time.Second, Linear: 25, LinearServers: linearServers, Readers: 3, Idlers: 2}
		if err := workload.Run(ctx, cfg); err != nil {
			c.violate("no client could begin its work: %v", err)
		}
	})
	wg.Go(func() { c.compareDigests(ctx) })
	n.torment(time.Duration(o.Minutes) * time.Minute)
	n.say("the faults end")
	healed := c.await(3*time.Minute, c.whole)
	if !healed {
		c.violate("three minutes after the faults ended not every server serves and votes")
	}
	for _, p := range n.promised {
		if !p.kept() {
			n.say("not seen: %s", p.what)
			c.note("not seen: " + p.what)
		}
	}
	time.Sleep(5 * time.Second)
	stop()
	wg.Wait()
	if healed {
		c.final(rec)
	}
}

// final records the state of every server once nothing changes any more.
func (c *Cluster) final(rec *history.Recorder) {
	same := func() bool {
		var zxid int64
		for i, h := range c.hosts {
			n := h.node()
			if n == nil {
				return false
			}
			n.Tree().RLock()
			z := n.Tree().LastZxid()
			n.Tree().RUnlock()
			if i > 0 && z != zxid {
				return false
			}
			zxid = z
		}
		return true
	}
	time.Sleep(30 * time.Second) // sessions without a client expire
	if !c.await(time.Minute, same) {
		c.violate("the servers do not come to hold the same")
	}
	for _, h := range c.hosts {
		if n := h.node(); n != nil {
			rec.State(workload.Inspect(rec, h.id, n, true))
		}
	}
}

// compareDigests compares the servers' trees all the time: two trees at the same
// zxid must be the same.
func (c *Cluster) compareDigests(ctx context.Context) {
	at := make(map[int64]uint64)
	for ctx.Err() == nil {
		time.Sleep(300 * time.Millisecond)
		for _, h := range c.hosts {
			n := h.node()
			if n == nil {
				continue
			}
			t := n.Tree()
			t.RLock()
			zxid, digest := t.LastZxid(), t.FullDigest()
			t.RUnlock()
			if was, ok := at[zxid]; ok && was != digest {
				c.violate("server %d has another tree at zxid %#x than there was before", h.id, zxid)
				return
			}
			at[zxid] = digest
		}
	}
}

// judge checks the history, and whether the run proves anything.
func (c *Cluster) judge(n *nemesis, r *Result, o Options) {
	c.mu.Lock()
	r.Seen = maps.Clone(c.counts)
	r.Violations = append(r.Violations, c.violations...)
	c.mu.Unlock()
	for _, h := range c.hosts {
		for what, times := range h.drive.seen {
			r.Seen[what] += times
		}
	}
	for _, op := range r.History.Ops {
		switch {
		case op.Op == proto.OpPing:
		case op.Answered():
			r.Ops++
		default:
			r.Unanswered++
		}
	}
	// Clients and servers may be cut off at the same time: then no server can
	// tell a client.
	r.Verdict = checkers.Check(r.History, checkers.Options{OnlyTold: true})
	r.broken = len(r.Violations)
	for _, x := range r.Verdict.Results {
		for _, v := range x.Violations {
			r.Violations = append(r.Violations, x.Checker+": "+v.What+"\n"+strings.Join(v.Around, "\n"))
		}
	}
	for _, p := range n.promised {
		if r.Seen["not seen: "+p.what] > 0 {
			r.Void = append(r.Void, "not seen: "+p.what)
		}
	}
	if r.Elections < o.Minutes/2+1 {
		r.Void = append(r.Void, fmt.Sprintf("%d elections", r.Elections))
	}
	if r.Ops < leastOps*o.Minutes {
		r.Void = append(r.Void, fmt.Sprintf("%d operations", r.Ops))
	}
}

// leave writes the trace and history of a failed run, and returns the name of the
// trace file.
func (c *Cluster) leave(r *Result, o Options) string {
	out := o.Out
	if out == "" {
		out = filepath.Join(os.TempDir(), "zkgo-sim")
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err.Error()
	}
	name := filepath.Join(out, fmt.Sprintf("seed-%d", o.Seed))
	f, err := os.Create(name + ".trace")
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if err := c.trace.writeTo(f); err != nil {
		return err.Error()
	}
	for _, v := range r.Violations {
		fmt.Fprintf(f, "\n%s\n", v)
	}
	if err := writeHistory(name+".history", r.History); err != nil {
		return err.Error()
	}
	return f.Name()
}

func writeHistory(name string, h *history.History) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	rec := history.NewRecorder(f)
	for _, x := range h.Sessions {
		rec.Session(x)
	}
	for _, x := range h.Ops {
		rec.Op(x)
	}
	for _, x := range h.Events {
		rec.Event(x)
	}
	for _, x := range h.Holds {
		rec.Hold(x)
	}
	for _, x := range h.States {
		rec.State(x)
	}
	return rec.Flush()
}

// summary returns the result in the form that tests/safety/summary keeps.
func (r *Result) summary() *summary.Run {
	run := &summary.Run{Suite: "simulation", Layout: r.o.Layout.String(), Seed: r.o.Seed, Ended: time.Now(), Seconds: r.Simulated.Seconds(),
		Answered: r.Ops, Unanswered: r.Unanswered, Elections: r.Elections, Faults: r.Faults, Seen: r.Seen, Void: r.Void}
	told := r.Violations
	if r.Verdict != nil {
		told = told[:r.broken]
		run.Judge(r.Verdict)
	}
	for _, v := range told {
		run.Violate(v)
	}
	return run
}
