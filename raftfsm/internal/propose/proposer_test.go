package propose

import (
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/command"
)

// doneFuture is the answer to an entry.
type doneFuture struct{ err error }

func (f doneFuture) Error() error  { return f.err }
func (f doneFuture) Index() uint64 { return 0 }
func (f doneFuture) Response() any { return nil }

// TestEntriesAndTheirMemory: the proposer should build an entry in the memory of an
// applied entry without readers, and never in the memory of an entry that is in flight or
// was refused, because Raft may still use it.
func TestEntriesAndTheirMemory(t *testing.T) {
	t.Parallel()
	for _, keeps := range []bool{true, false} {
		n := newQueues()
		p := &Proposer{Incarnation: 3, Now: time.Now, Claim: noClaim, Sizes: &n.sizes, Local: n.local, Remote: n.remote, Backlog: n.backlog, Keeps: keeps}
		next := func() []byte {
			if err := n.local.Propose(&command.Command{Kind: command.KindSync, Waiter: numbered(1)}, false); err != nil {
				t.Fatal(err)
			}
			return p.Collect()
		}
		a, b := next(), next()
		if &a[0] == &b[0] {
			t.Fatalf("keeps %t: two entries on their way share their memory", keeps)
		}
		var background sync.WaitGroup
		p.unanswered = []proposal{{doneFuture{}, 1, a}, {doneFuture{raft.ErrLeadershipLost}, 2, b}}
		p.Start(&background)
		p.Drain()
		if err := <-p.Failed; err == nil {
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

// TestWorth: which commands the proposer proposes while an entry is in flight.
func TestWorth(t *testing.T) {
	t.Parallel()
	n := newQueues()
	p := &Proposer{Incarnation: 3, Now: time.Now, Claim: noClaim, Sizes: &n.sizes, Local: n.local, Remote: n.remote, Backlog: n.backlog, Keeps: true}
	propose := func(commands int) {
		t.Helper()
		for range commands {
			if err := n.local.Propose(&command.Command{Kind: command.KindSync, Waiter: numbered(1)}, false); err != nil {
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
		if got := commandsOf(t, p.Collect()); got != want {
			t.Fatalf("an entry of %d commands, want %d", got, want)
		}
	}
	worth("nothing waits", false)
	propose(3)
	worth("nothing is in flight", true)
	collect(3)
	propose(FullWeight / commandWeight / 2)
	worth("half of a full entry during another", false)
	propose(FullWeight / commandWeight / 2)
	worth("a full entry during another", true)
	collect(FullWeight / commandWeight)
	propose(2 * FullWeight / commandWeight)
	worth("as many as may be in flight", false)
	if p.worth(true) {
		t.Error("the last one is worth a third entry in flight")
	}
	p.NoteApplied(1)
	worth("one of two is applied", true)
	collect(2 * FullWeight / commandWeight)
	p.NoteApplied(2)
	propose(1)
	worth("one command during another entry", false)
	if !p.worth(true) {
		t.Error("the last one is not worth it")
	}
	p.NoteApplied(3)
	worth("none is in flight any more", true)
}

// commandsOf returns the number of commands in a batch.
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
