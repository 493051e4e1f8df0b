package propose

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/command"
)

// queues belong to a server that leads.
type queues struct {
	backlog *Backlog
	local   *LocalRuns
	remote  *RemoteRuns
	sizes   SizeCounter
}

func newQueues() *queues {
	b := NewBacklog()
	return &queues{backlog: b, local: NewLocalRuns(1, 7, b), remote: NewRemoteRuns(b, new(command.Checkers))}
}

// noClaim claims nothing about the state.
func noClaim() command.Check { return command.Check{} }

// heldLog is a Raft that completes entries when the test says so.
type heldLog struct {
	ops   chan int // commands of each entry
	land  chan struct{}
	apply func() // called for each entry that completes
}

type heldFuture struct{ done chan struct{} }

func (f heldFuture) Error() error  { <-f.done; return nil }
func (f heldFuture) Index() uint64 { return 0 }
func (f heldFuture) Response() any { return nil }

func (l *heldLog) Apply(data []byte, _ time.Duration) raft.ApplyFuture {
	l.ops <- opsIn(data[command.BatchHeaderSize:])
	f := heldFuture{make(chan struct{})}
	go func() {
		<-l.land
		l.apply()
		close(f.done)
	}()
	return f
}

// opsIn returns the number of commands in runs.
func opsIn(runs []byte) int {
	n := 0
	for len(runs) > 0 {
		var h command.RunHeader
		_, rest, err := h.Decode(runs)
		if err != nil {
			return -1
		}
		n, runs = n+int(h.Count), rest
	}
	return n
}

// TestSecondEntry: while an entry is in flight, the proposer sends only a full one. Fewer
// commands should wait for the first entry, and be sent together with all that arrived in
// the meantime.
func TestSecondEntry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newQueues()
		log := &heldLog{ops: make(chan int, 10), land: make(chan struct{})}
		p := &Proposer{Raft: log, Now: time.Now, Claim: noClaim, Sizes: &n.sizes, Local: n.local, Remote: n.remote, Backlog: n.backlog}
		var applied atomic.Uint64
		log.apply = func() { p.NoteApplied(applied.Add(1)) }
		var background sync.WaitGroup
		p.Start(&background)
		propose := func(count int) {
			for range count {
				if err := n.local.Propose(&command.Command{Kind: command.KindSync, Waiter: numbered(1)}, false); err != nil {
					t.Error(err)
				}
			}
		}
		want := func(what string, ops ...int) {
			t.Helper()
			synctest.Wait()
			var got []int
			for len(log.ops) > 0 {
				got = append(got, <-log.ops)
			}
			if !slices.Equal(got, ops) {
				t.Errorf("%s: entries of %v commands, want %v", what, got, ops)
			}
		}
		const full = FullWeight/commandWeight + 1
		propose(1)
		want("alone", 1)
		propose(30)
		want("while one is in flight")
		log.land <- struct{}{}
		want("applied", 30)
		propose(full)
		synctest.Wait()
		if len(log.ops) != 1 || <-log.ops < full/2 {
			t.Error("a full entry waits for the one before it")
		}
		propose(full)
		want("two in flight")
		close(log.land)
		synctest.Wait()
		for len(log.ops) > 0 {
			<-log.ops
		}
		propose(1)
		want("nothing in flight", 1)
		p.Drain()
		background.Wait()
	})
}

// leaderStub is a Stream that passes runs to the test.
type leaderStub struct {
	runs  chan []byte
	ended chan struct{}
}

func newLeaderStub(room int) leaderStub {
	return leaderStub{make(chan []byte, room), make(chan struct{})}
}

func (l leaderStub) Send(run []byte) error {
	select {
	case l.runs <- slices.Clone(run):
	case <-l.ended:
	}
	return nil
}

func (l leaderStub) Close() { close(l.ended) }

// TestFewMessagesToTheLeader: new commands wait until they are as many as those in flight,
// or those in flight are applied.
func TestFewMessagesToTheLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := NewLocalRuns(1, 7, NewBacklog())
		to := newLeaderStub(100)
		f := NewForwarding(to, q)
		go f.Run()
		propose := func() {
			if err := q.Propose(&command.Command{Kind: command.KindSync}, false); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		want := func(what string, messages ...int) {
			t.Helper()
			synctest.Wait()
			var got []int
			for len(to.runs) > 0 {
				got = append(got, opsIn(<-to.runs))
			}
			if !slices.Equal(got, messages) {
				t.Errorf("%s: messages of %v commands, want %v", what, got, messages)
			}
		}
		propose()
		want("alone", 1)
		propose()
		want("as many as on their way", 1)
		propose()
		want("fewer")
		q.Applied(nil, 1, 1)
		want("one applied", 1)
		for range 20 {
			propose()
		}
		want("twenty clients", 2, 4, 8)
		q.Applied(nil, 2, 16)
		want("all applied", 6)
		q.Applied(nil, 18, 6)
		propose()
		want("alone again", 1)
		q.Lose()
		propose()
		want("all lost", 1)
		f.Halt()
	})
}

// TestNoCommandWaitsForever: however proposing, applying and sending interleave, no command
// should wait forever.
func TestNoCommandWaitsForever(t *testing.T) {
	t.Parallel()
	q := NewLocalRuns(1, 7, NewBacklog())
	to := newLeaderStub(1)
	f := NewForwarding(to, q)
	var background sync.WaitGroup
	defer background.Wait()
	defer f.Halt()
	background.Go(f.Run)
	answered := make(chan struct{}, 64)
	background.Go(func() { // applies each run in random pieces
		for next := uint64(1); ; {
			select {
			case run := <-to.runs:
				for left := opsIn(run); left > 0; {
					n := 1 + rand.IntN(left)
					q.Applied(nil, next, n)
					next, left = next+uint64(n), left-n
					for range n {
						answered <- struct{}{}
					}
				}
			case <-f.stop:
				return
			}
		}
	})
	const clients, rounds = 8, 3000
	for range clients {
		answered <- struct{}{}
	}
	for i := range clients * rounds { // at most one command in flight per client
		select {
		case <-answered:
		case <-time.After(time.Minute):
			t.Fatalf("stuck after %d commands", i)
		}
		if err := q.Propose(&command.Command{Kind: command.KindSync}, false); err != nil {
			t.Fatal(err)
		}
	}
	for range clients {
		<-answered
	}
}

// TestNoCommandIsLeftToTheProposer: the same for the proposer, which learns of its
// entries on the goroutine that applies them.
func TestNoCommandIsLeftToTheProposer(t *testing.T) {
	t.Parallel()
	n := newQueues()
	answered := make(chan struct{}, 64)
	entries := make(chan appliedEntry, MaxInFlight)
	p := &Proposer{Raft: entryLog{entries}, Now: time.Now, Claim: noClaim, Sizes: &n.sizes, Local: n.local, Remote: n.remote, Backlog: n.backlog}
	var background sync.WaitGroup
	p.Start(&background)
	applied := make(chan struct{})
	go func() {
		defer close(applied)
		for seq := uint64(1); ; seq++ {
			e, ok := <-entries
			if !ok {
				return
			}
			for range e.ops {
				answered <- struct{}{}
			}
			p.NoteApplied(seq)
			close(e.done)
		}
	}()
	const clients, rounds = 8, 3000
	for range clients {
		answered <- struct{}{}
	}
	for i := range clients * rounds {
		select {
		case <-answered:
		case <-time.After(time.Minute):
			t.Fatalf("stuck after %d commands", i)
		}
		if err := n.local.Propose(&command.Command{Kind: command.KindSync}, false); err != nil {
			t.Fatal(err)
		}
	}
	p.Drain()
	background.Wait()
	close(entries)
	<-applied
	if len(answered) != clients {
		t.Fatalf("%d clients have an answer after the proposer has drained, want %d", len(answered), clients)
	}
}

// entryLog is a Raft that hands entries to a goroutine that applies them.
type entryLog struct{ entries chan appliedEntry }

type appliedEntry struct {
	ops  int
	done chan struct{}
}

func (l entryLog) Apply(data []byte, _ time.Duration) raft.ApplyFuture {
	e := appliedEntry{opsIn(data[command.BatchHeaderSize:]), make(chan struct{})}
	l.entries <- e
	return heldFuture{e.done}
}

// refusingLog is a Raft that refuses every entry.
type refusingLog struct{}

func (refusingLog) Apply([]byte, time.Duration) raft.ApplyFuture {
	return doneFuture{raft.ErrLeadershipTransferInProgress}
}

// TestARefusedEntryIsNoticed: the proposer should learn that Raft has refused an entry even
// if no entry completes and no command arrives.
func TestARefusedEntryIsNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newQueues()
		p := &Proposer{Raft: refusingLog{}, Now: time.Now, Claim: noClaim, Sizes: &n.sizes, Local: n.local, Remote: n.remote, Backlog: n.backlog}
		var background sync.WaitGroup
		p.Start(&background)
		began := time.Now()
		if err := n.local.Propose(&command.Command{Kind: command.KindSync}, false); err != nil {
			t.Fatal(err)
		}
		if err := <-p.Failed; err == nil || time.Since(began) > overdueAfter {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		background.Wait()
	})
}
