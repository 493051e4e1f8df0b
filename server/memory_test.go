package server

import (
	"testing"

	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/proto"
)

// While memory is full, writes that need more are refused in order, and all other
// requests are executed.
func TestWritesThatNeedMemoryAreRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.memory = limits.NewMemory(1<<40, s.log)
	w := connect(t, s)
	w.create("/a", []byte("four"), proto.ModePersistent)
	w.create("/b", nil, proto.ModePersistent)
	s.memory.Full.Store(true)
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
	if n := s.memory.Refused.Load(); n != 6 || s.lastZxid() != before {
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
	s.memory.Full.Store(false)
	w.create("/c", nil, proto.ModePersistent)
}

// In a pipeline the refusal keeps its place.
func TestARefusedWriteKeepsItsPlace(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.memory = limits.NewMemory(1<<40, s.log)
	w := connect(t, s)
	w.create("/a", []byte("four"), proto.ModePersistent)
	s.memory.Full.Store(true)
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
	eventually(t, "the leader finds its memory full", leader.memory.Full.Load)
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
		eventually(t, "all servers have applied it", func() bool { return s.lastZxid() >= last })
		s.tree.RLock()
		if s.tree.Get("/a") != nil {
			t.Errorf("server %d has it", s.cfg.Quorum.ID)
		}
		s.tree.RUnlock()
	}
}
