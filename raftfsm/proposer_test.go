package raftfsm

import (
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
)

// stubLog is a Raft that refuses the batches that the test chooses and applies the
// others immediately.
type stubLog struct {
	r       *replica
	refuse  func(batch int) bool
	batches int
}

type stubFuture struct{ err error }

func (f stubFuture) Error() error  { return f.err }
func (f stubFuture) Index() uint64 { return 0 }
func (f stubFuture) Response() any { return nil }

func (s *stubLog) Apply(data []byte, _ time.Duration) raft.ApplyFuture {
	s.batches++
	if s.refuse(s.batches) {
		return stubFuture{raft.ErrLeadershipTransferInProgress}
	}
	return stubFuture{s.r.feed(data)}
}

// TestRefusedBatch: when Raft refuses one batch and accepts the next, the state machine
// doesn't execute the next, and the proposer stops.
func TestRefusedBatch(t *testing.T) {
	t.Parallel()
	r := newReplica(t)
	start := command.LeaderStart{Server: 1, Incarnation: 3, Level: command.Level, Flags: command.FlagStandalone}
	r.mustFeed(t, start.Append(nil))
	n := r.node
	log := &stubLog{r: r, refuse: func(batch int) bool { return batch == 3 }}
	p := &proposer{raft: log, incarnation: 3, now: time.Now, claim: r.lastCheck, sizes: &n.proposed, local: n.intake, remote: n.remote, backlog: n.backlog}
	n.incarnation.Store(3)
	n.proposing.Store(p)
	propose := func() {
		for range maxBatchOps { // fills one batch
			if err := n.intake.propose(&command.Command{Kind: command.KindSync, Waiter: true}, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 6 {
		propose()
	}
	var background sync.WaitGroup
	p.start(&background)
	if err := <-p.failed; err == nil {
		t.Fatal("no error")
	}
	background.Wait()
	if log.batches > 3+maxInFlight {
		t.Fatalf("%d batches were proposed although the third was refused", log.batches)
	}
	if got := len(r.recorder.applied); got != 2*maxBatchOps {
		t.Fatalf("%d commands were executed, want those of the first two batches", got)
	}
	propose()
	if p.collect() != nil {
		t.Fatal("a halted proposer takes a run")
	}
}

// TestRemoteRuns: runs of other servers get into batches only for the incarnation that
// they were sent to.
func TestRemoteRuns(t *testing.T) {
	t.Parallel()
	r := newReplica(t)
	start := command.LeaderStart{Server: 1, Incarnation: 3, Level: command.Level, Flags: command.FlagStandalone}
	r.mustFeed(t, start.Append(nil))
	n := r.node
	run := encodeRun(t, []command.Command{attachCommand(), {Kind: command.KindSync}})
	if n.remote.add(3, 2, run) == nil {
		t.Fatal("a run was taken before the leader was ready")
	}
	n.remote.open(3)
	if n.remote.add(2, 2, run) == nil {
		t.Fatal("a run of another incarnation was taken")
	}
	if n.remote.add(3, 4, run) == nil {
		t.Fatal("a run of another server was taken")
	}
	if err := n.remote.add(3, 2, run); err != nil {
		t.Fatal(err)
	}
	clear(run) // add has copied it
	c := command.Command{Kind: command.KindSync, Waiter: true}
	if err := n.intake.propose(&c, false); err != nil {
		t.Fatal(err)
	}
	p := &proposer{incarnation: 3, now: time.Now, claim: r.lastCheck, sizes: &n.proposed, local: n.intake, remote: n.remote, backlog: n.backlog}
	r.mustFeed(t, p.collect())
	if len(r.recorder.applied) != 3 || r.sessions.Len() != 1 {
		t.Fatalf("%d commands were executed", len(r.recorder.applied))
	}
	for row := range r.sessions.All {
		if row.Server != 2 {
			t.Fatalf("the session belongs to server %d", row.Server)
		}
	}
	waited := 0
	for _, o := range r.recorder.applied {
		if o.waited {
			waited++
		}
	}
	if waited != 1 {
		t.Fatalf("%d commands found a waiter", waited)
	}
	if p.collect() != nil {
		t.Fatal("something is left")
	}
}

// TestEntriesAndTheirMemory: the proposer builds an entry in the memory of an applied
// entry that is no longer read, and never in that of an entry that is in flight or was
// refused, because Raft may still use it.
func TestEntriesAndTheirMemory(t *testing.T) {
	t.Parallel()
	for _, keeps := range []bool{true, false} {
		r := newReplica(t)
		n := r.node
		p := &proposer{incarnation: 3, now: time.Now, claim: r.lastCheck, sizes: &n.proposed, local: n.intake, remote: n.remote, backlog: n.backlog, keeps: keeps}
		next := func() []byte {
			if err := n.intake.propose(&command.Command{Kind: command.KindSync, Waiter: true}, false); err != nil {
				t.Fatal(err)
			}
			return p.collect()
		}
		a, b := next(), next()
		if &a[0] == &b[0] {
			t.Fatalf("keeps %t: two entries on their way share their memory", keeps)
		}
		var background sync.WaitGroup
		p.flights = []flight{{stubFuture{}, 1, a}, {stubFuture{raft.ErrLeadershipLost}, 2, b}}
		p.start(&background)
		p.drain()
		if err := <-p.failed; err == nil {
			t.Fatal("no error")
		}
		background.Wait()
		p.halted = false
		for range 3 {
			switch c := next(); {
			case &c[0] == &b[0]:
				t.Fatalf("keeps %t: the memory of an entry of unknown fate was taken", keeps)
			case &c[0] == &a[0] && keeps:
				t.Fatal("the memory of an entry that is kept was taken")
			case &c[0] == &a[0]:
				a = []byte{0} // found
			}
		}
		if len(a) != 1 && !keeps {
			t.Fatal("the memory of the entry that was applied was not taken again")
		}
	}
}

// TestWorth: what the proposer proposes while an entry is in flight.
func TestWorth(t *testing.T) {
	t.Parallel()
	n := newReplica(t).node
	p := &proposer{incarnation: 3, now: time.Now, claim: func() command.Check { return command.Check{} }, sizes: &n.proposed, local: n.intake, remote: n.remote, backlog: n.backlog, keeps: true}
	propose := func(commands int) {
		t.Helper()
		for range commands {
			if err := n.intake.propose(&command.Command{Kind: command.KindSync, Waiter: true}, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	worth := func(what string, want bool) {
		t.Helper()
		if p.worth(false) != want {
			t.Errorf("%s: worth it: %t, want %t", what, !want, want)
		}
	}
	collect := func(want int) {
		t.Helper()
		if got := commandsOf(t, p.collect()); got != want {
			t.Fatalf("an entry of %d commands, want %d", got, want)
		}
	}
	worth("nothing waits", false)
	propose(3)
	worth("nothing is in flight", true)
	collect(3)
	propose(fullWeight / commandWeight / 2)
	worth("half of a full entry during another", false)
	propose(fullWeight / commandWeight / 2)
	worth("a full entry during another", true)
	collect(fullWeight / commandWeight)
	propose(2 * fullWeight / commandWeight)
	worth("as many as may be in flight", false)
	if p.worth(true) {
		t.Error("the last one is worth a third entry in flight")
	}
	p.land(1)
	worth("one of two has landed", true)
	collect(2 * fullWeight / commandWeight)
	p.land(2)
	propose(1)
	worth("one command during another entry", false)
	if !p.worth(true) {
		t.Error("the last one is not worth it")
	}
	p.land(3)
	worth("none is in flight any more", true)
}

// commandsOf returns how many commands a batch holds.
func commandsOf(t *testing.T, data []byte) (n int) {
	t.Helper()
	var h command.BatchHeader
	runs, err := h.Decode(data)
	for err == nil && len(runs) > 0 {
		var r command.RunHeader
		_, runs, err = r.Decode(runs)
		n += int(r.Count)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}
