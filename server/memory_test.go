package server

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// Live memory decides, with a margin between refusing and accepting again. Garbage
// doesn't, but the guard collects before garbage would fill the memory.
func TestMemoryGuard(t *testing.T) {
	t.Parallel()
	var u memoryUse
	collected, after := 0, int64(0)
	now := time.Unix(1000, 0)
	g := newMemoryGuard(1000, slog.New(slog.DiscardHandler))
	g.read = func() memoryUse { return u }
	g.clock = func() time.Time { return now }
	g.collect = func() { collected++; u.live, u.heap = after, after; now = now.Add(100 * time.Millisecond) }
	for i, step := range []struct {
		use       memoryUse
		after     int64 // live memory, if a collection runs
		wait      time.Duration
		full      bool
		collected int
	}{
		{memoryUse{live: 500, heap: 800, rest: 50}, 0, 0, false, 0},
		{memoryUse{live: 500, heap: 900, rest: 50}, 600, 0, false, 1},                // garbage, as a collection shows
		{memoryUse{live: 500, heap: 900, rest: 50}, 600, 0, false, 1},                // no second collection so soon
		{memoryUse{live: 500, heap: 950, rest: 50}, 600, 0, true, 1},                 // but no further
		{memoryUse{live: 500, heap: 900, rest: 50}, 600, 10 * time.Second, false, 2}, // it was garbage
		{memoryUse{live: 600, heap: 900, rest: 50}, 860, 10 * time.Second, true, 3},  // now it is live
		{memoryUse{live: 840, heap: 840, rest: 50}, 840, 0, true, 3},                 // not enough room
		{memoryUse{live: 840, heap: 840, rest: 50}, 780, 4 * time.Second, true, 3},   // deletes have made room, which the guard doesn't know
		{memoryUse{live: 840, heap: 840, rest: 50}, 780, 2 * time.Second, false, 4},  // until the next collection
		{memoryUse{live: 840, heap: 840, rest: 50}, 780, 0, false, 4},                // below the mark where it refuses
		{memoryUse{live: 870, heap: 870, rest: 50}, 870, 0, true, 4},
	} {
		u, after = step.use, step.after
		now = now.Add(step.wait)
		g.look()
		if g.full.Load() != step.full || collected != step.collected {
			t.Errorf("step %d: full %v, %d collections; want %v, %d", i, g.full.Load(), collected, step.full, step.collected)
		}
	}
}

// The guard doesn't wait for its next periodic check if the writes since the last one
// may have filled the memory. The nearer that is, the sooner it checks.
func TestMemoryIsLookedAtAfterMuchWasWritten(t *testing.T) {
	t.Parallel()
	var u memoryUse
	g := newMemoryGuard(1000, slog.New(slog.DiscardHandler))
	g.read = func() memoryUse { return u }
	g.collect = func() {}
	poked := func() bool {
		select {
		case <-g.poke:
			return true
		default:
			return false
		}
	}
	for _, step := range []struct{ use, room int64 }{{100, 200}, {500, 100}, {860, 10}, {990, 10}} {
		u = memoryUse{live: step.use, heap: step.use}
		g.look()
		if g.wrote(int(step.room - 1)); poked() {
			t.Errorf("with %d in use it is looked after %d bytes", step.use, step.room-1)
		}
		g.wrote(1)
		g.wrote(1)
		if !poked() || poked() {
			t.Errorf("with %d in use it is not looked once after %d bytes", step.use, step.room)
		}
	}
}

func TestReadMemory(t *testing.T) {
	t.Parallel()
	if u := readMemory(); u.heap <= 0 || u.rest <= 0 || u.live < 0 {
		t.Errorf("%+v", u)
	}
}

// While memory is full, writes that need more are refused in order, and all other
// requests are executed.
func TestWritesThatNeedMemoryAreRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.memory = newMemoryGuard(1<<40, s.log)
	w := connect(t, s)
	w.create("/a", []byte("four"), proto.ModePersistent)
	w.create("/b", nil, proto.ModePersistent)
	s.memory.full.Store(true)
	before := s.lastZxid()
	create := &proto.CreateRequest{Path: "/c", ACL: proto.OpenACL()}
	for _, step := range []struct {
		op  proto.Op
		req proto.Record
	}{
		{proto.OpCreate, create},
		{proto.OpCreate2, create},
		{proto.OpCreateContainer, &proto.CreateRequest{Path: "/c", ACL: proto.OpenACL(), Flags: int32(proto.ModeContainer)}},
		{proto.OpSetData, setA("more than that")},
		{proto.OpSetACL, &proto.SetACLRequest{Path: "/a", ACL: proto.OpenACL(), Version: -1}},
		{proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{
			{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: "/b", Version: -1}}, {Op: proto.OpCreate, Req: create}}}},
	} {
		if got := w.call(step.op, step.req); got.Err != proto.ErrQuotaExceeded || got.Zxid != before {
			t.Errorf("%v: %+v", step.op, got.ReplyHeader)
		}
	}
	if n := s.memory.refused.Load(); n != 6 || s.lastZxid() != before {
		t.Errorf("%d refused, %d transactions", n, s.lastZxid()-before)
	}
	for name, want := range map[string]string{"memory_full": "1", "memory_writes_refused": "6", "memory_ceiling_bytes": "1099511627776"} {
		if got := metric(s, name); got != want {
			t.Errorf("%s is %q, want %s", name, got, want)
		}
	}
	w.set("/a", "less")
	w.get("/a", true)
	w.must(proto.OpSync, &proto.SyncRequest{Path: "/"})
	w.must(proto.OpPing, nil)
	w.must(proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: "/b", Version: -1}}}})
	other := connect(t, s) // a new session
	other.must(proto.OpCloseSession, nil)
	s.memory.full.Store(false)
	w.create("/c", nil, proto.ModePersistent)
}

// In a pipeline the refusal keeps its place.
func TestARefusedWriteKeepsItsPlace(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.memory = newMemoryGuard(1<<40, s.log)
	w := connect(t, s)
	w.create("/a", []byte("four"), proto.ModePersistent)
	s.memory.full.Store(true)
	b := appendRequest(nil, 100, proto.OpSetData, setA("five"))
	b = appendRequest(b, 101, proto.OpCreate, &proto.CreateRequest{Path: "/b", ACL: proto.OpenACL()})
	b = appendRequest(b, 102, proto.OpGetData, &proto.GetDataRequest{Path: "/a"})
	w.write(b)
	for i, want := range []proto.Code{proto.Ok, proto.ErrQuotaExceeded, proto.Ok} {
		if got := w.recv(); got.Xid != int32(100+i) || got.Err != want {
			t.Errorf("%d: %+v", i, got.ReplyHeader)
		}
	}
}

// A write that the leader refuses for lack of memory is refused for the clients of all
// servers: the decision is in the log.
func TestAFullLeaderRefusesForAll(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3, func(c *Config) {
		if c.Quorum.ID == 3 { // the first leader
			c.Limits.MemoryCeiling = 1
		}
	})
	leader, others := e.leader()
	if leader.cfg.Quorum.ID != 3 {
		t.Skip("another server leads")
	}
	eventually(t, "the leader finds its memory full", leader.memory.full.Load)
	w := connect(t, others[0])
	for _, step := range []struct {
		op   proto.Op
		req  proto.Record
		want proto.Code
	}{
		{proto.OpCreate, &proto.CreateRequest{Path: "/a", ACL: proto.OpenACL()}, proto.ErrQuotaExceeded},
		{proto.OpSetData, &proto.SetDataRequest{Path: "/", Data: []byte("x"), Version: -1}, proto.ErrQuotaExceeded},
		{proto.OpSetData, &proto.SetDataRequest{Path: "/", Version: -1}, proto.Ok},
		{proto.OpSync, &proto.SyncRequest{Path: "/"}, proto.Ok},
	} {
		if got := w.call(step.op, step.req); got.Err != step.want {
			t.Errorf("%v: %+v, want %v", step.op, got.ReplyHeader, step.want)
		}
	}
	last := others[0].lastZxid()
	for _, s := range e.servers {
		eventually(t, "all have applied it", func() bool { return s.lastZxid() >= last })
		s.tree.RLock()
		if s.tree.Get("/a") != nil {
			t.Errorf("server %d has it", s.cfg.Quorum.ID)
		}
		s.tree.RUnlock()
	}
}

var errNone = errors.New("no such file")
