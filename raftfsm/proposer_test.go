package raftfsm

import (
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
)

// stubLog is a Raft that refuses the batches that the test chooses and applies the
// others immediately.
type stubLog struct {
	r       *machineCopy
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
	p := &propose.Proposer{Raft: log, Incarnation: 3, Now: time.Now, Claim: r.Claims.Last, Sizes: &n.proposed, Local: n.local, Remote: n.remote, Backlog: n.backlog}
	n.incarnation.Store(3)
	n.proposing.Store(p)
	fill := func() {
		for range propose.MaxBatchOps { // fills one batch
			if err := n.local.Propose(&command.Command{Kind: command.KindSync, Waiter: ignorant{}}, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 6 {
		fill()
	}
	var background sync.WaitGroup
	p.Start(&background)
	if err := <-p.Failed; err == nil {
		t.Fatal("no error")
	}
	background.Wait()
	if log.batches > 3+propose.MaxInFlight {
		t.Fatalf("%d batches were proposed although the third was refused", log.batches)
	}
	if got := len(r.recorder.applied); got != 2*propose.MaxBatchOps {
		t.Fatalf("%d commands were executed, want those of the first two batches", got)
	}
	fill()
	if p.Collect() != nil {
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
	if n.remote.Add(3, 2, run) == nil {
		t.Fatal("a run was taken before the leader was ready")
	}
	n.remote.Open(3)
	if n.remote.Add(2, 2, run) == nil {
		t.Fatal("a run of another incarnation was taken")
	}
	if n.remote.Add(3, 4, run) == nil {
		t.Fatal("a run of another server was taken")
	}
	if err := n.remote.Add(3, 2, run); err != nil {
		t.Fatal(err)
	}
	clear(run) // add has copied it
	c := command.Command{Kind: command.KindSync, Waiter: ignorant{}}
	if err := n.local.Propose(&c, false); err != nil {
		t.Fatal(err)
	}
	p := &propose.Proposer{Incarnation: 3, Now: time.Now, Claim: r.Claims.Last, Sizes: &n.proposed, Local: n.local, Remote: n.remote, Backlog: n.backlog}
	r.mustFeed(t, p.Collect())
	if len(r.recorder.applied) != 3 || r.Sessions.Len() != 1 {
		t.Fatalf("%d commands were executed", len(r.recorder.applied))
	}
	for row := range r.Sessions.All {
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
	if p.Collect() != nil {
		t.Fatal("something is left")
	}
}
