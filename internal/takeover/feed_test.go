package takeover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/internal/zktxn"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tree"
)

// target is a Target that records the proposals, and settles them when the test says so.
type target struct {
	mu    sync.Mutex
	lines []string
	hold  bool // proposals get no outcome
	held  []func(error)
	lost  chan struct{}
	begun error // of Begin
	wants []*mirrored.Forward
}

func newTarget() *target { return &target{lost: make(chan struct{})} }

func (g *target) add(done func(error), format string, args ...any) error {
	g.mu.Lock()
	g.lines = append(g.lines, fmt.Sprintf(format, args...))
	hold := g.hold
	if hold {
		g.held = append(g.held, done)
	}
	g.mu.Unlock()
	if !hold {
		done(nil)
	}
	return nil
}

func (g *target) State() (mirrored.State, mirrored.Mark, int64) {
	return mirrored.State{Phase: mirrored.Following}, mirrored.Mark{}, 0
}

func (g *target) Begin(_ context.Context, t *tree.Tree, s *session.Table) error {
	_ = g.add(func(error) {}, "begin %#x with %d znodes, %d sessions", t.LastZxid(), t.NodeCount(), s.Len())
	return g.begun
}

func (g *target) Append(prev int64, txns [][]byte, done func(error)) error {
	zxids := make([]int64, len(txns))
	for i := range txns {
		tx, err := zktxn.Decode(txns[i])
		if err != nil {
			return err
		}
		zxids[i] = tx.Zxid
	}
	return g.add(done, "append %d → %d", prev, zxids)
}

func (g *target) Mark(m *mirrored.Mark, done func(error)) error {
	return g.add(done, "mark %d %v %+v", m.Proposed, m.InSync, m.Answer)
}
func (g *target) Forwards() ([]*mirrored.Forward, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := g.wants
	g.wants = nil
	return list, make(chan struct{})
}
func (g *target) Heard() []mirrored.Forward {
	return []mirrored.Forward{{Session: 7, Timeout: 4000}}
}
func (g *target) Sessions() []mirrored.Forward {
	return []mirrored.Forward{{Session: 7, Timeout: 4000}, {Session: 8, Timeout: 5000}}
}
func (g *target) End(context.Context, int64) error               { return nil }
func (g *target) SetPhase(context.Context, mirrored.Phase) error { return nil }
func (g *target) Lost() <-chan struct{}                          { return g.lost }

func (g *target) got() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	lines := g.lines
	g.lines = nil
	return lines
}

// txn returns a transaction that changes no znode.
func txn(zxid int64) *zkfiles.Txn {
	b := proto.AppendInt(proto.AppendLong(nil, 1), 1)
	b = proto.AppendInt(proto.AppendLong(proto.AppendLong(b, zxid), 1000), int32(proto.OpError))
	b = proto.AppendInt(b, int32(proto.ErrNoNode))
	tx, err := zktxn.Decode(b)
	if err != nil {
		panic(err)
	}
	tx.Raw = b
	return tx
}

// running starts a feed in a bubble of fake time.
func running(t *testing.T, g *target, zxid int64) (f *feed, stop func() error) {
	t.Helper()
	f = newFeed(g, "zk1:2888", zxid, time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.run(ctx) }()
	return f, func() error {
		cancel()
		return <-ended
	}
}

func expect(t *testing.T, g *target, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := g.got(); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestFeed: a state goes into the log when it is exact, and then the transactions in their order.
func TestFeed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newTarget()
		f, stop := running(t, g, 0)
		s := zkfiles.NewState(0)
		s.Zxid = 100
		s.Sessions[9] = 4000
		must.Do(t, f.Snapshot(s))
		early := txn(101)
		early.Digest = &zkfiles.Digest{Zxid: 101, Version: zktxn.DigestVersion, Value: 12345}
		must.Do(t, f.Commit(early)) // its digest means nothing: the snapshot may be newer
		expect(t, g)                // not exact yet
		must.Do(t, f.Synced())
		expect(t, g, "begin 0x65 with 5 znodes, 1 sessions", "mark 101 true {Session:0 Cxid:0 Code:Ok (0)}")
		must.Do(t, f.Commit(txn(102)))
		expect(t, g, "append 101 → [102]")
		g.hold = true
		must.Do(t, f.Commit(txn(103)))
		synctest.Wait()
		f.answer(7, 3, proto.Ok)
		synctest.Wait() // the mark has the newest zxid of its moment
		must.Do(t, f.Commit(txn(104)))
		expect(t, g, "append 102 → [103]", "mark 103 true {Session:7 Cxid:3 Code:Ok (0)}", "append 103 → [104]")
		must.Do(t, f.Ping(110, time.Now()))
		time.Sleep(markEvery)
		expect(t, g, "mark 110 true {Session:0 Cxid:0 Code:Ok (0)}")
		for _, done := range g.held {
			done(nil)
		}
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestFeedEnds: the connection ends with the first proposal that has no effect, with a state that
// the servers refuse, and with the leadership; but not before the proposals in flight have an
// outcome.
func TestFeedEnds(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for name, end := range map[string]func(*target, *feed){
		"refused":         func(g *target, _ *feed) { g.held[0](refused); g.held[1](nil) },
		"no longer leads": func(g *target, _ *feed) { close(g.lost) },
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newTarget()
			g.hold = true
			f := newFeed(g, "zk1:2888", 5, time.Now)
			ended := make(chan error, 1)
			go func() { ended <- f.run(t.Context()) }()
			must.Do(t, f.Commit(txn(6)))
			synctest.Wait()
			must.Do(t, f.Commit(txn(7)))
			synctest.Wait()
			end(g, f)
			if err := <-ended; err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		g := newTarget()
		g.begun = refused
		f, _ := running(t, g, 0)
		must.Do(t, f.Snapshot(zkfiles.NewState(0)))
		must.Do(t, f.Synced())
		expect(t, g, "begin 0x0 with 5 znodes, 0 sessions")
	})
}

// TestFeedNeedsAState: a connection ends if its transactions belong to no state.
func TestFeedNeedsAState(t *testing.T) {
	t.Parallel()
	if err := newFeed(newTarget(), "zk1:2888", 0, time.Now).Commit(txn(1)); !errors.Is(err, errNoState) {
		t.Errorf("a transaction: %v", err)
	}
	for zxid, want := range map[int64]error{3<<32 | 1: nil, 3<<32 | 2: errNoState} {
		f := newFeed(newTarget(), "zk1:2888", 0, time.Now)
		f.beginEmpty(0)
		if err := f.Commit(txn(zxid)); !errors.Is(err, want) {
			t.Errorf("0x%x as the first transaction: %v", zxid, err)
		}
	}
	if err := newFeed(newTarget(), "zk1:2888", 0, time.Now).Synced(); !errors.Is(err, errNoState) {
		t.Errorf("in sync: %v", err)
	}
}

// TestFeedIsBounded: a connection that is too fast for the log ends, and a run has a limit.
func TestFeedIsBounded(t *testing.T) {
	t.Parallel()
	f := newFeed(newTarget(), "zk1:2888", 1, time.Now)
	big := txn(2)
	big.Raw = append(big.Raw, make([]byte, runLimit)...)
	var n int
	for n = 0; ; n++ {
		if err := f.Commit(big); err != nil {
			if !errors.Is(err, errQueue) {
				t.Error(err)
			}
			break
		}
	}
	if n*len(big.Raw) < queueLimit || n*len(big.Raw) > queueLimit+2*len(big.Raw) {
		t.Errorf("%d transactions wait", n)
	}
	if _, run, _, _ := f.take(); len(run) != 1 {
		t.Errorf("a run of %d long transactions", len(run))
	}
}

func TestLag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ have, proposed, want int64 }{{5, 9, 4}, {9, 9, 0}, {9, 5, 0}, {1<<32 | 9, 2 << 32, -1}} {
		if got := lag(c.have, c.proposed); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestTouched: the ensemble's leader hears of our clients' sessions, and of all sessions during a
// cutover.
func TestTouched(t *testing.T) {
	t.Parallel()
	m := New(Config{})
	touched := m.touched(newTarget())
	if list := touched(nil); len(list) != 0 {
		t.Errorf("without clients: %+v", list)
	}
	m.cfg.Serve = true
	if list := touched(nil); len(list) != 1 || list[0].Session != 7 || list[0].Timeout != 4000 {
		t.Errorf("%+v", list)
	}
	m.cutting = make(chan struct{})
	if list := touched(nil); len(list) != 2 {
		t.Errorf("during a cutover: %+v", list)
	}
}
