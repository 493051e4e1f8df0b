package raftfsm

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// slowLog is a Raft that takes a while for each entry and notes what it got.
type slowLog struct {
	took  time.Duration
	ops   func() int // commands of the newest entry
	apply func()     // before anybody is answered

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

// TestReturners: behind an entry the proposer waits for as many commands as that one
// held beside those that wait already, not longer than it should, and not at all
// after it has waited in vain.
func TestReturners(t *testing.T) {
	t.Parallel()
	t.Run("of an ensemble", func(t *testing.T) { t.Parallel(); testReturners(t, returnWithin, false) })
	t.Run("gathered", func(t *testing.T) { t.Parallel(); testReturners(t, gatherWithin, true) })
}

// always is a limit that stays.
func always(limit time.Duration) func() time.Duration { return func() time.Duration { return limit } }

func testReturners(t *testing.T, within time.Duration, gathers bool) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplica(t)
		start := leaderStart{server: 1, incarnation: 3, level: level, flags: flagStandalone}
		r.mustFeed(t, start.append(nil))
		n := r.node
		p := &proposer{incarnation: 3, now: time.Now, claim: r.lastCheck, sizes: &n.proposed, local: n.intake, remote: n.remote, backlog: n.backlog, keeps: true}
		if gathers { // as a server without an ensemble that has been asked to
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
		entries(1) // alone: at once
		write(2)
		time.Sleep(log.took)
		entries(1) // for the one that was answered
		time.Sleep(within / 2)
		write(1)
		entries(1, 3)
		time.Sleep(log.took)
		write(2)
		entries(1, 3)
		time.Sleep(within + 2*perReturner)
		entries(1, 3) // a little longer for each
		time.Sleep(perReturner)
		entries(1, 3, 2) // the third stays away
		write(1)
		time.Sleep(log.took)
		entries(1, 3, 2, 1) // nobody is waited for now
		time.Sleep(log.took)
		time.Sleep(within)
		write(1) // whoever comes late does not wait either
		entries(1, 3, 2, 1, 1)
		if gathers {
			n.Gather(false)
			time.Sleep(log.took)
			write(1)
			write(1)
			time.Sleep(log.took)
			entries(1, 3, 2, 1, 1, 1, 1)
			time.Sleep(log.took)
			write(2)
			write(1)
			time.Sleep(log.took)
			entries(1, 3, 2, 1, 1, 1, 1, 2, 1) // nobody is waited for
		}
	})
}

// TestReturnersAreMany: however many were answered, nobody waits longer than returnMost.
func TestReturnersAreMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newReturners(always(returnWithin))
		began := time.Now()
		w.applied(10_000, 0)
		<-w.timer.C
		if waited := time.Since(began); waited != returnMost {
			t.Errorf("waited %v, want %v", waited, returnMost)
		}
	})
}

// TestReturnersStayAway: where nobody ever comes back, next to no entry waits; where
// they come again, all do.
func TestReturnersStayAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, b := newReturners(always(returnWithin)), newBacklog()
		waited := 0
		for range 1000 {
			if w.applied(5, 0); w.waits(b) {
				waited++
				<-w.timer.C
				w.expired()
			}
		}
		if most := maxInVain + 1000>>maxInVain + 1; waited > most {
			t.Fatalf("waited behind %d of 1000 entries, want at most %d", waited, most)
		}
		w.rest = 0
		for range 10 {
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
		w = newReturners(nil)
		if w.applied(5, 0); w.waits(b) {
			t.Fatal("waits where it should not")
		}
	})
}
