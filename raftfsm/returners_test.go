package raftfsm

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// slowLog is a Raft that takes a while for each entry and records what it got.
type slowLog struct {
	took  time.Duration
	ops   func() int // commands of the newest entry
	apply func()     // called before any reply

	mu    sync.Mutex
	sizes []int // commands of each entry
}

type slowFuture struct {
	stubFuture
	ready <-chan time.Time
	apply func()
}

func (f slowFuture) Error() error { <-f.ready; f.apply(); return nil }

func (s *slowLog) Apply([]byte, time.Duration) raft.ApplyFuture {
	s.mu.Lock()
	s.sizes = append(s.sizes, s.ops())
	s.mu.Unlock()
	return slowFuture{ready: time.After(s.took), apply: s.apply}
}

func (s *slowLog) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes = nil
}

// TestReturners: after an entry, the proposer waits for as many commands as that entry
// held, in addition to those already queued. It doesn't wait longer than it should, and
// not at all after a wait in vain.
func TestReturners(t *testing.T) {
	t.Parallel()
	t.Run("of an ensemble", func(t *testing.T) { t.Parallel(); testReturners(t, returnWithin, false) })
	t.Run("gathered", func(t *testing.T) { t.Parallel(); testReturners(t, gatherWithin, true) })
}

// always returns a constant limit.
func always(limit time.Duration) func() time.Duration { return func() time.Duration { return limit } }

func testReturners(t *testing.T, within time.Duration, gathers bool) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplica(t)
		start := leaderStart{server: 1, incarnation: 3, level: level, flags: flagStandalone}
		r.mustFeed(t, start.append(nil))
		n := r.node
		p := &proposer{incarnation: 3, now: time.Now, claim: r.lastCheck, sizes: &n.proposed, local: n.intake, remote: n.remote, backlog: n.backlog, keeps: true}
		if gathers { // as a standalone server does after Gather(true)
			p.patience = alone{n}.patience
			n.Gather(true)
		} else {
			p.patience = always(within)
		}
		log := &slowLog{took: time.Millisecond, ops: func() int { return p.ops }, apply: n.backlog.mark}
		p.raft = log
		write := func(count int) {
			for range count {
				if err := n.intake.propose(&Command{Kind: KindSync, Waiter: true}, false); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
		}
		entries := func(want ...int) {
			t.Helper()
			synctest.Wait()
			log.mu.Lock()
			defer log.mu.Unlock()
			if !slices.Equal(log.sizes, want) {
				t.Fatalf("entries of %v commands, want %v", log.sizes, want)
			}
		}
		p.start(&n.background)
		defer n.background.Wait()
		defer p.drain()

		write(1)
		entries(1) // a lone command: immediately
		write(2)
		time.Sleep(log.took)
		entries(1) // waits for the client that got its reply
		time.Sleep(within / 2)
		write(1)
		entries(1, 3)
		time.Sleep(log.took)
		write(2)
		entries(1, 3)
		time.Sleep(within + 2*perReturner)
		entries(1, 3) // a little longer for each client
		time.Sleep(perReturner)
		entries(1, 3, 2) // the third client doesn't return
		time.Sleep(log.took + within + 2*perReturner)
		write(1) // the wait for the two clients is over, and none follows for now
		entries(1, 3, 2, 1)
		write(2)
		time.Sleep(log.took)
		entries(1, 3, 2, 1, 2)
		write(1)
		time.Sleep(log.took)
		entries(1, 3, 2, 1, 2, 1)
		time.Sleep(log.took)
		if !gathers {
			return
		}
		for range minRest - 2 { // two entries have gone since
			write(2)
			time.Sleep(log.took + returnMost)
		}
		for range lastWaits + 1 { // two writers that return immediately
			write(2)
			time.Sleep(log.took)
			synctest.Wait()
		}
		if !n.Returning() {
			t.Error("nobody knows that they return")
		}
		n.Gather(false)
		write(2)
		time.Sleep(log.took)
		synctest.Wait()
		log.forget()
		write(1)
		write(1)
		entries(1)
		time.Sleep(log.took)
		entries(1, 1) // no wait
		if n.Returning() {
			t.Error("is still taken to know that they return")
		}
	})
}

// TestReturnersAreMany: however many clients got replies, no entry waits longer than
// returnMost.
func TestReturnersAreMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newReturners(always(returnWithin), new(atomic.Bool))
		began := time.Now()
		w.applied(10_000, 0)
		<-w.timer.C
		if waited := time.Since(began); waited != returnMost {
			t.Errorf("waited %v, want %v", waited, returnMost)
		}
	})
}

// TestReturnersStayAway: if clients never return, hardly any entry waits. If they start
// to return, all entries wait.
func TestReturnersStayAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, b := newReturners(always(returnWithin), new(atomic.Bool)), newBacklog()
		waited := 0
		for range 1000 {
			if w.applied(5, 0); w.waits(b) {
				waited++
				<-w.timer.C
				w.expired()
			}
		}
		if most := 2 * bits.Len(1000/minRest); waited > most {
			t.Fatalf("waited behind %d of 1000 entries, want at most %d", waited, most)
		}
		w.rest = 0
		for range lastWaits {
			if w.come.Load() {
				t.Fatal("says too soon that they come")
			}
			w.applied(5, 0)
			if !w.waits(b) {
				t.Fatal("does not wait for those who come")
			}
			b.add(weight(5, 0))
			if w.waits(b) {
				t.Fatal("waits although all are there")
			}
			b.taken(weight(5, 0))
		}
		if !w.come.Load() {
			t.Fatal("does not say that they come")
		}
		if w.applied(1, 0); w.waits(b) {
			t.Fatal("waits where nobody else would be answered later")
		}
		w = newReturners(nil, new(atomic.Bool))
		if w.applied(5, 0); w.waits(b) {
			t.Fatal("waits where it should not")
		}
	})
}

// TestReturnersAtRandom: if half of the clients arrive in time by chance, the proposer
// hardly ever waits for them. If one in eight is late, it waits nearly always.
func TestReturnersAtRandom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		late        float64
		least, most int
	}{{0.55, 0, 1000}, {0.125, 8000, 10_000}} {
		synctest.Test(t, func(t *testing.T) {
			w, b := newReturners(always(returnWithin), new(atomic.Bool)), newBacklog()
			chance := rand.New(rand.NewPCG(7, 7))
			waited := 0
			for range 10_000 {
				w.applied(2, weight(1, 0))
				if !w.waits(b) {
					continue
				}
				waited++
				if chance.Float64() < c.late {
					w.expired()
					continue
				}
				b.add(weight(3, 0))
				w.waits(b)
				b.taken(weight(3, 0))
			}
			if waited < c.least || waited > c.most {
				t.Errorf("%v late: waited behind %d of 10,000 entries", c.late, waited)
			}
		})
	}
}
