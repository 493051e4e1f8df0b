package raftfsm

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
	"github.com/zkgo/zkgo/raftfsm/internal/replica"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// inBubble runs f in fake time, in parallel with other tests.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Parallel()
	synctest.Test(t, f)
}

// manualClock is a clock that the test advances.
type manualClock struct {
	mu sync.Mutex
	t  time.Time
}

func newManualClock() *manualClock {
	return &manualClock{t: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func (c *manualClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *manualClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// faultyStores are stores with a log that can stall or fail.
type faultyStores struct {
	replica.Stores
	failed chan error

	mu    sync.Mutex
	gate  chan struct{} // if set, writes wait until it is closed
	next  error         // error of the next write
	dead  error         // all writes block until Close, then fail with this error
	ended chan struct{} // closed by Close
	once  sync.Once
}

type faultyLog struct {
	raft.LogStore
	f *faultyStores
}

// faultyConfig returns cfg with stores that can stall or fail.
func faultyConfig(cfg Config) (Config, *faultyStores) {
	f := &faultyStores{failed: make(chan error, 1), ended: make(chan struct{})}
	cfg.open = func(c *replica.Config) (replica.Stores, error) {
		s, err := replica.OpenStores(c)
		f.Stores = s
		return f, err
	}
	return cfg, f
}

func (f *faultyStores) Logs() raft.LogStore  { return &faultyLog{f.Stores.Logs(), f} }
func (f *faultyStores) Failed() <-chan error { return f.failed }
func (f *faultyStores) Close() error {
	f.once.Do(func() { close(f.ended) })
	return f.Stores.Close()
}

// stall makes writes wait until the caller calls release.
func (f *faultyStores) stall() (release func()) {
	gate := make(chan struct{})
	f.mu.Lock()
	f.gate = gate
	f.mu.Unlock()
	return func() {
		f.mu.Lock()
		f.gate = nil
		f.mu.Unlock()
		close(gate)
	}
}

// failNext makes only the next write fail.
func (f *faultyStores) failNext(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = err
}

// kill makes every write block from now on, like raftlog after an error.
func (f *faultyStores) kill(err error) {
	f.mu.Lock()
	f.dead = err
	f.mu.Unlock()
	f.failed <- err
}

func (l *faultyLog) StoreLog(e *raft.Log) error { return l.StoreLogs([]*raft.Log{e}) }

func (l *faultyLog) StoreLogs(e []*raft.Log) error {
	l.f.mu.Lock()
	gate, next, dead := l.f.gate, l.f.next, l.f.dead
	l.f.next = nil
	l.f.mu.Unlock()
	if gate != nil {
		<-gate
	}
	switch {
	case next != nil:
		return next
	case dead != nil:
		<-l.f.ended
		return dead
	}
	return l.LogStore.StoreLogs(e)
}

var errInjected = errors.New("injected fault")

// TestRefusedEntry makes Raft refuse one batch in the middle of a pipeline. From the first
// lost command until Lost is called, no command is applied, so no client sees a later
// command applied without an earlier one.
func TestRefusedEntry(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cfg, faults := faultyConfig(memoryConfig())
		r := start(t, cfg)
		defer r.close()
		s := r.attach(time.Hour)
		r.setLive(s.ID)
		r.do(create(s, "/n", 0))
		rounds := cost.InShort(3, 20)
		for round := range rounds {
			const commands = 3000
			var chans []chan outcome
			r.note(func() { r.applied, r.lost = nil, nil })
			for i := range commands {
				if i == 1000/rounds*round {
					faults.failNext(errInjected)
				}
				chans = append(chans, r.send(create(s, fmt.Sprintf("/n/%d-%d", round, i), 0)))
			}
			r.wait(t, "Lost", func() bool { return len(r.lost) > 0 && !r.states[len(r.states)-1].Serving })
			r.awaitServing()
			r.do(command.Command{Kind: command.KindSync})
			var executed []string
			for _, o := range r.applied {
				if o.op == proto.OpCreate2 {
					executed = append(executed, o.path)
				}
			}
			gaps, next, before := 0, 0, true
			for i, ch := range chans {
				was := next < len(executed) && executed[next] == fmt.Sprintf("/n/%d-%d", round, i)
				if was {
					next++
				} else if before {
					gaps++
				}
				before = was
				if acked := len(ch) == 1; acked && !was {
					t.Fatalf("round %d: command %d was acknowledged and not executed", round, i)
				}
			}
			if gaps != 1 || next != len(executed) {
				t.Fatalf("round %d: %d gaps in what was executed, %d of %d commands in order", round, gaps, next, len(executed))
			}
		}
		if r.Status().Epoch != 0 {
			t.Fatal("a server that stands alone changed its epoch")
		}
	})
}

// TestLateLeaderStart: a LeaderStart of an earlier leadership comes after the current
// one, so the log skips the batches proposed after it. The server notices, and starts a
// new leadership.
func TestLateLeaderStart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := start(t, memoryConfig())
		defer r.close()
		s := r.attach(time.Hour)
		r.do(create(s, "/a", 0))
		late := command.LeaderStart{Server: 1, Incarnation: 7, Level: r.control.startLevel(), Flags: command.FlagStandalone, Cluster: r.replica.Identity.ClusterID()}
		if err := r.replica.Raft().Apply(late.Append(nil), 0).Error(); err != nil {
			t.Fatal(err)
		}
		r.wait(t, "another leadership", func() bool {
			n := len(r.states)
			return n > 2 && r.states[n-1].Serving && !r.states[n-2].Serving
		})
		if o := r.do(create(s, "/b", 0)); o.code != proto.Ok {
			t.Fatalf("create after the late leaderStart: %v", o.code)
		}
	})
}

// awaitServing waits until the server serves.
func (r *rig) awaitServing() {
	r.t.Helper()
	r.wait(r.t, "serving", func() bool { return len(r.states) > 0 && r.states[len(r.states)-1].Serving })
}

// TestDeadStore: after a permanent store error, no command is acknowledged, the error is
// reported, waiters are given up, and Close returns.
func TestDeadStore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cfg, faults := faultyConfig(memoryConfig())
		r := start(t, cfg)
		s := r.attach(time.Hour)
		r.do(create(s, "/a", 0))
		faults.kill(errInjected)
		ch := make(chan outcome, 1)
		c := create(s, "/b", 0)
		c.Waiter = waiter(ch)
		proposed := r.Propose(&c) == nil // the server may not have noticed the failure yet
		if err := <-r.Err(); !errors.Is(err, errInjected) {
			t.Fatalf("Err: %v", err)
		}
		if proposed {
			r.wait(t, "Lost", func() bool { return len(r.lost) == 1 })
		}
		if err := r.Propose(&c); !errors.Is(err, errInjected) {
			t.Fatalf("Propose after the failure: %v", err)
		}
		if st := r.Status(); st.Serving || st.Role != Looking || st.Reason == "" {
			t.Fatalf("status %+v", st)
		}
		time.Sleep(time.Hour)
		if len(ch) != 0 || r.exists("/b") {
			t.Fatal("a command was applied after the store had failed")
		}
		if err := r.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	})
}

// TestStoppedMachine: an entry that can't be applied stops the server.
func TestStoppedMachine(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := start(t, memoryConfig())
		defer r.close()
		s := r.attach(time.Hour)
		r.do(create(s, "/a", 0))
		if err := r.replica.Raft().Apply([]byte{command.Format + 1, command.EntryBatch}, 0).Error(); err != nil {
			t.Fatal(err)
		}
		err := <-r.Err()
		if err == nil || !r.exists("/a") {
			t.Fatal("no error")
		}
		c := create(s, "/b", 0)
		if err := r.Propose(&c); err == nil {
			t.Fatal("a command was taken")
		}
		if r.exists("/b") {
			t.Fatal("a command was applied")
		}
		if err := r.Snapshot(); err == nil {
			t.Fatal("a stopped machine wrote a snapshot")
		}
	})
}

// TestCloseWaitsForQueuedWork: no goroutine leaks for an entry that waits for the
// state machine when the disk fails and the server is closed. Raft isn't shut down before
// the state machine has finished, because otherwise it wouldn't answer in about half the
// cases.
func TestCloseWaitsForQueuedWork(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for range 8 {
			cfg, faults := faultyConfig(memoryConfig())
			slow := &gated{recorder: newRecorder()}
			cfg.Handler = slow
			r := &rig{recorder: slow.recorder, t: t, Node: start(t, cfg).Node}
			s := r.attach(time.Hour)
			synctest.Wait() // the client gets its reply before BatchDone
			open := slow.shut()
			r.do(create(s, "/a", 0))
			r.send(set(s, "/a", make([]byte, propose.FullWeight)))
			synctest.Wait()
			if stored := r.replica.Raft().AppliedIndex(); stored != r.replica.Raft().LastIndex() {
				t.Fatalf("up to %d of %d entries were handed over", stored, r.replica.Raft().LastIndex())
			}
			faults.kill(errInjected)
			if err := <-r.Err(); !errors.Is(err, errInjected) {
				t.Fatalf("the server stops for %v", err)
			}
			time.AfterFunc(drainLimit/2, open)
			r.close()
		}
	})
}
