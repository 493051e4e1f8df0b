package server

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// A client that watches everything and reads nothing must neither block other clients
// nor use unbounded memory: above its bound the server closes it.
func TestAClientThatNeverReadsIsClosed(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.Limits.MaxOutput = 1 << 20 })
	deaf, w := connect(t, s), connect(t, s)
	deaf.must(proto.OpAddWatch, &proto.AddWatchRequest{Path: "/", Mode: int32(proto.AddWatchPersistentRecursive)})
	path := "/" + strings.Repeat("p", 10000)
	w.create(path, nil, proto.ModePersistent)
	for range 500 { // 5 MB of events
		w.set(path, "")
	}
	eventually(t, "the client that does not read is gone", func() bool { return sourceOf(s).Server().Connections == 1 })
	if s.stats.Dropped.Load() != 1 {
		t.Error("the client that does not read was closed for a reason other than its output")
	}
	eventually(t, "nothing counts as queued", func() bool { return s.queuedOut.Load() == 0 })
}

// A client that asks for much and reads nothing blocks only itself.
func TestAClientThatAsksAndNeverReadsWaits(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	deaf, w := connect(t, s), connect(t, s)
	w.create("/big", make([]byte, 1<<20-1000), proto.ModePersistent)
	var b []byte
	for i := range int32(40) {
		b = appendRequest(b, i, proto.OpGetData, &proto.GetDataRequest{Path: "/big"})
	}
	deaf.write(b)
	for range 20 {
		w.set("/big", "x")
		w.set("/big", strings.Repeat("y", 1<<20-1000))
	}
	if n := s.queuedOut.Load(); n > 4<<20 {
		t.Errorf("%d bytes are queued for a client that does not read", n)
	}
	for i := range int32(40) {
		if got := deaf.recv(); got.Xid != i || got.Err != proto.Ok {
			t.Fatalf("reply %d: %+v", i, got.ReplyHeader)
		}
	}
}

// Reads queued after a write should see the state after that write. If their replies would
// need much memory, the server should stop reading from the client until it has read these
// replies.
func TestLongRepliesAfterAWriteWaitForTheClient(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.Limits.MaxOutput = 8 << 20 })
	slow, w := connect(t, s), connect(t, s)
	w.create("/big", make([]byte, 1<<20-1000), proto.ModePersistent)
	w.create("/n", nil, proto.ModePersistent)
	const reads = 20
	var b []byte
	xid := int32(0)
	send := func(op proto.Op, req proto.Record) { b = appendRequest(b, xid, op, req); xid++ }
	for range cost.InShort(2, 3) {
		send(proto.OpSetData, &proto.SetDataRequest{Path: "/n", Version: -1})
		for range reads {
			send(proto.OpGetData, &proto.GetDataRequest{Path: "/big"})
			send(proto.OpGetAllChildrenNumber, &proto.GetAllChildrenNumberRequest{Path: "/"})
			send(proto.OpExists, &proto.ExistsRequest{Path: "/n"})
		}
	}
	slow.write(b)
	for range 20 {
		w.set("/n", "x")
	}
	if n := s.queuedOut.Load(); n > 4<<20 {
		t.Errorf("%d bytes are queued for a client that does not read", n)
	}
	for i := range xid {
		if got := slow.recv(); got.Xid != i || got.Err != proto.Ok {
			t.Fatalf("reply %d: %+v", i, got.ReplyHeader)
		}
	}
}

// A multiRead of a megabyte can ask for gigabytes.
func TestAMultiReadHasABound(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.Limits.MaxOutput = 1 << 20 })
	w := connect(t, s)
	w.create("/a", make([]byte, 100<<10), proto.ModePersistent)
	for n, want := range map[int]proto.Code{5: proto.Ok, 1000: proto.ErrMarshalling} {
		var req proto.MultiRequest
		for range n {
			req.Ops = append(req.Ops, proto.MultiOp{Op: proto.OpGetData, Req: &proto.GetDataRequest{Path: "/a"}})
		}
		if got := w.call(proto.OpMultiRead, &req); got.Err != want {
			t.Errorf("%d reads: %v, want %v", n, got.Err, want)
		}
	}
}

// A reply to a multiRead above the bound should be refused before we allocate memory for it.
func TestRefusedMultiReadAllocatesNothing(t *testing.T) {
	cost.MeasuresMemory(t)
	s := startServer(t)
	w := connect(t, s)
	w.create("/a", make([]byte, 1<<20-100), proto.ModePersistent)
	var req proto.MultiRequest
	for range 1000 {
		req.Ops = append(req.Ops, proto.MultiOp{Op: proto.OpGetData, Req: &proto.GetDataRequest{Path: "/a"}})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if got := w.call(proto.OpMultiRead, &req); got.Err != proto.ErrMarshalling {
		t.Errorf("%v", got.Err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
}

// All outputs together have a bound too: above it, the largest is closed.
func TestLargestOutputIsClosedFirst(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.Limits.MaxOutputTotal = 1 << 20 })
	deaf, w := connect(t, s), connect(t, s)
	deaf.must(proto.OpAddWatch, &proto.AddWatchRequest{Path: "/", Mode: int32(proto.AddWatchPersistentRecursive)})
	path := "/" + strings.Repeat("p", 10000)
	w.create(path, nil, proto.ModePersistent)
	eventually(t, "the client that does not read is gone", func() bool {
		w.set(path, "")
		return sourceOf(s).Server().Connections == 1
	})
	if s.stats.Dropped.Load() != 1 {
		t.Error("the client that does not read was closed for a reason other than its output")
	}
}

// The server should hold back a flood of requests after a write, and answer every request in
// the end.
func TestFloodAfterAWriteIsHeldBack(t *testing.T) {
	t.Parallel()
	flood := cost.InShort[int32](maxHeldRequests*3/2, 3*maxHeldRequests)
	s := startServer(t)
	w := connect(t, s)
	w.create("/a", []byte("x"), proto.ModePersistent)
	go func() {
		var b []byte
		for i := range flood {
			op, req := proto.OpGetData, proto.Record(&proto.GetDataRequest{Path: "/a"})
			if i%1000 == 0 {
				op, req = proto.OpSetData, &proto.SetDataRequest{Path: "/a", Version: -1}
			}
			if b = appendRequest(b, i, op, req); len(b) > 32<<10 {
				w.nc.Write(b)
				b = b[:0]
			}
		}
		w.nc.Write(b)
	}()
	for i := range flood {
		if got := w.recv(); got.Xid != i {
			t.Fatalf("xid %d, want %d", got.Xid, i)
		}
	}
	if n := s.outstanding.Load(); n != 0 {
		t.Errorf("%d requests are still counted as outstanding", n)
	}
}

// When all clients reach the limit of requests in flight, all requests still complete.
func TestOutstandingLimit(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.Limits.GlobalOutstanding = 2 })
	const clients, each = 8, 200
	done := make(chan bool, clients)
	for i := range clients {
		w := connect(t, s)
		go func() {
			var b []byte
			for j := range int32(each) {
				b = appendRequest(b, j, proto.OpCreate, &proto.CreateRequest{Path: "/n" + strconv.Itoa(i*each+int(j)), ACL: proto.OpenACL()})
			}
			w.nc.Write(b)
			for range each {
				if _, err := w.frame(); err != nil {
					done <- false
					return
				}
			}
			done <- true
		}()
	}
	for range clients {
		if !<-done {
			t.Fatal("a client did not get its answers")
		}
	}
}

// Clients that disconnect with requests in flight leave nothing behind.
func TestAbandonedRequestsLeaveNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for i := range 200 {
		w := connect(t, s)
		var b []byte
		for j := range int32(20) {
			b = appendRequest(b, j, proto.OpSetData, &proto.SetDataRequest{Path: "/", Data: []byte{byte(i)}, Version: -1})
			b = appendRequest(b, j, proto.OpGetData, &proto.GetDataRequest{Path: "/", Watch: true})
		}
		w.write(b)
		w.nc.Close()
	}
	eventually(t, "all clients are gone", func() bool {
		p := sourceOf(s).Server()
		return p.Connections == 0 && p.Outstanding == 0 && p.WatchCount == 0 && s.queuedOut.Load() == 0
	})
	s.clients.mu.Lock()
	defer s.clients.mu.Unlock()
	if len(s.clients.sessions)+len(s.clients.perHost) != 0 {
		t.Errorf("left: %d sessions, %d hosts", len(s.clients.sessions), len(s.clients.perHost))
	}
}
