package transport

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

// slowLog is a leader's log that reports the entries it is about to store and then waits.
type slowLog struct {
	*raft.InmemStore
	storing func([]*raft.Log)
	mu      sync.Mutex
	wait    chan struct{} // nil: don't wait
}

// hold makes later StoreLogs calls wait for a channel.
func (l *slowLog) hold(until chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wait = until
}

func (l *slowLog) StoreLogs(entries []*raft.Log) error {
	l.storing(entries)
	l.mu.Lock()
	wait := l.wait
	l.mu.Unlock()
	if wait != nil {
		<-wait
	}
	return l.InmemStore.StoreLogs(entries)
}

// TestFollowersStoreConcurrently: the followers should store an entry while the leader does.
// Still, nothing should be committed before the leader has stored it, because the leader
// hasn't counted the answers.
func TestFollowersStoreConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := startRaft(t, quorum.NewMemory(), 3, func(c *raft.Config, _ *Config) { c.CommitTimeout = time.Hour })
		leader := leaderOf(t, nodes)
		if err := leader.raft.Apply([]byte("a"), 0).Error(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // for both followers' answers
		gate := make(chan struct{})
		leader.log.hold(gate)
		f := leader.raft.Apply([]byte("b"), 0)
		synctest.Wait()
		for _, n := range nodes {
			want := leader.raft.LastIndex() + 1
			if n == leader {
				want--
			}
			if got := n.raft.LastIndex(); got != want {
				t.Errorf("server %s has entries up to %d, want %d", n.id, got, want)
			}
			if n.raft.CommitIndex() > leader.raft.LastIndex() {
				t.Errorf("server %s takes an entry for committed that the leader does not have", n.id)
			}
		}
		close(gate)
		if err := f.Error(); err != nil {
			t.Fatal(err)
		}
		leader.trans.Committed(f.Index())
		for _, n := range nodes {
			n.fsm.waitFor(t, "b")
		}
	})
}

// leaderOfTerm3 returns a single Transport and a channel of the messages that its peer
// receives. The peer has acknowledged entries up to 6 in term 3.
func leaderOfTerm3(t *testing.T) (*Transport, <-chan *raft.AppendEntriesRequest) {
	tr, seen := besidePeer(t)
	askFor(t, tr, 5, 6)
	<-seen
	return tr, seen
}

// entriesOf returns the entries first to last, of term 3.
func entriesOf(first, last uint64) (entries []*raft.Log) {
	for i := first; i <= last; i++ {
		entries = append(entries, &raft.Log{Index: i, Term: 3})
	}
	return entries
}

// askFor acts like Raft when it has the entries first to last to send.
func askFor(t *testing.T, tr *Transport, first, last uint64) {
	t.Helper()
	var resp raft.AppendEntriesResponse
	err := tr.AppendEntries("2", "s2:1", &raft.AppendEntriesRequest{RPCHeader: headerOf("1"),
		Term: 3, PrevLogEntry: first - 1, PrevLogTerm: 3, Entries: entriesOf(first, last)}, &resp)
	if err != nil || !resp.Success {
		t.Fatalf("%+v, %v", resp, err)
	}
}

func TestSentOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr, seen := leaderOfTerm3(t)
		tr.Storing(entriesOf(7, 8))
		tr.Storing(entriesOf(9, 9)) // not while a message that Raft hasn't asked for is in flight
		synctest.Wait()
		if n := len(seen); n != 1 {
			t.Fatalf("%d messages before Raft asks, want 1", n)
		}
		if s := <-seen; s.PrevLogEntry != 6 || s.PrevLogTerm != 3 || s.Term != 3 || len(s.Entries) != 2 {
			t.Errorf("sent %+v", s)
		}
		askFor(t, tr, 7, 8)
		if tr.Acked(3, "2") != 8 || len(seen) != 0 {
			t.Errorf("acknowledged up to %d, %d more messages", tr.Acked(3, "2"), len(seen))
		}
	})
}

// TestSentAgainWithMore: if Raft has more entries by then, we should send its request as
// another message.
func TestSentAgainWithMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr, seen := leaderOfTerm3(t)
		tr.Storing(entriesOf(7, 8))
		askFor(t, tr, 7, 9)
		if first, second := <-seen, <-seen; len(first.Entries) != 2 || len(second.Entries) != 3 || tr.Acked(3, "2") != 9 {
			t.Errorf("sent %d and %d entries, acknowledged up to %d", len(first.Entries), len(second.Entries), tr.Acked(3, "2"))
		}
	})
}

func TestNotSentEarly(t *testing.T) {
	t.Parallel()
	for name, storing := range map[string]func(tr *Transport){
		"gap":        func(tr *Transport) { tr.Storing(entriesOf(8, 8)) },
		"again":      func(tr *Transport) { tr.Storing(entriesOf(6, 7)) },
		"other term": func(tr *Transport) { tr.Storing([]*raft.Log{{Index: 7, Term: 4}}) },
		"two terms":  func(tr *Transport) { tr.Storing([]*raft.Log{{Index: 7, Term: 3}, {Index: 8, Term: 4}}) },
		"deposed":    func(tr *Transport) { tr.Deposed(); tr.Storing(entriesOf(7, 7)) },
		"closed":     func(tr *Transport) { tr.Close(); tr.Storing(entriesOf(7, 7)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tr, seen := leaderOfTerm3(t)
				storing(tr)
				synctest.Wait()
				if len(seen) != 0 {
					t.Errorf("sent %+v", <-seen)
				}
			})
		})
	}
}

// TestEarlyAndLost: if an early message fails, we should report that to Raft, and send the
// next one again.
func TestEarlyAndLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr, seen := leaderOfTerm3(t)
		tr.cfg.Hanging = func() time.Duration { return time.Hour }
		tr.Storing(entriesOf(7, 7))
		var resp raft.AppendEntriesResponse
		err := tr.AppendEntries("2", "s2:1", &raft.AppendEntriesRequest{Term: 3, PrevLogEntry: 6, PrevLogTerm: 3, Entries: entriesOf(7, 7)}, &resp)
		if !errors.Is(err, errMuted) || resp.Success {
			t.Fatalf("%+v, %v", resp, err)
		}
		tr.cfg.Hanging = nil
		askFor(t, tr, 7, 7)
		if n := len(seen); n != 1 || tr.Acked(3, "2") != 7 {
			t.Errorf("%d messages, acknowledged up to %d", n, tr.Acked(3, "2"))
		}
	})
}
