package server

import (
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
)

func setA(data string) *proto.SetDataRequest {
	return &proto.SetDataRequest{Path: "/a", Data: []byte(data), Version: -1}
}

// Requests above the limit wait in order of arrival and are then executed.
func TestRequestsAboveTheLimitWaitTheirTurn(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.Limits.RequestThrottle = RequestThrottle{MaxRequests: 3} })
	first := connect(t, s)
	first.create("/a", nil, proto.ModePersistent)
	others := []*wire{connect(t, s), connect(t, s)}
	release := hold(t, s)
	for range 10 {
		first.send(proto.OpSetData, setA("first"))
	}
	eventually(t, "three are in process, one waits", func() bool { return s.outstanding.Load() == 3 && s.stats.ThrottleWaits.Load() == 1 })
	for i, w := range others {
		w.send(proto.OpSetData, setA("other"))
		eventually(t, "another waits", func() bool { return s.stats.ThrottleWaits.Load() == int64(i+2) })
	}
	if n := s.outstanding.Load(); n != 3 {
		t.Errorf("%d requests are in process", n)
	}
	release()
	for range 10 {
		if got := first.recv(); got.Err != proto.Ok {
			t.Fatalf("%+v", got.ReplyHeader)
		}
	}
	for _, w := range others {
		if got := w.recv(); got.Err != proto.Ok {
			t.Errorf("%+v", got.ReplyHeader)
		}
	}
	eventually(t, "nothing is in process", func() bool {
		return s.throttle.slots.Taken() == 0 && len(s.throttle.slots.Waiting()) == 0
	})
}

func TestAThrottleNeedsALimit(t *testing.T) {
	t.Parallel()
	if newThrottle(RequestThrottle{DropStale: true}) != nil {
		t.Error("no limit is a limit")
	}
}

// A waiting client isn't read from, but keeps its session; a client that disconnects
// gives up its place.
func TestThrottledClientKeepsItsSessionOrLeavesTheQueue(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.Limits.RequestThrottle = RequestThrottle{MaxRequests: 1} })
	busy, w := connect(t, s), connect(t, s)
	busy.create("/a", nil, proto.ModePersistent)
	release := hold(t, s)
	busy.send(proto.OpSetData, setA("x"))
	eventually(t, "it is in process", func() bool { return s.outstanding.Load() == 1 })
	w.send(proto.OpExists, &proto.ExistsRequest{Path: "/a"})
	eventually(t, "the read waits", func() bool { return s.stats.ThrottleWaits.Load() == 1 })
	handler{s}.Live(nil)
	live := handler{s}.Live(nil)
	if len(live) != 2 {
		t.Errorf("alive are %v, want both sessions", live)
	}
	s.clients.mu.Lock()
	c := s.clients.sessions[w.resp.SessionID]
	s.clients.mu.Unlock()
	c.kill()
	eventually(t, "a closed client leaves the queue and is counted", func() bool { return s.stats.StaleDropped.Load() == 1 })
	release()
	w.wantClosed()
	if got := busy.recv(); got.Err != proto.Ok {
		t.Errorf("%+v", got.ReplyHeader)
	}
	if n, waits := metric(s, "stale_requests_dropped"), metric(s, "request_throttle_wait_count"); n != "1" || waits != "1" {
		t.Errorf("%s requests waited, %s were dropped", waits, n)
	}
	busy.set("/a", "there is a slot")
}

// A request that has waited too long is answered with ThrottledOp and not executed;
// ping and closeSession always are.
func TestThrottledOp(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.Limits.RequestThrottle = RequestThrottle{OpWait: 1} })
	w := connect(t, s)
	for _, op := range []struct {
		op  proto.Op
		req proto.Record
	}{
		{proto.OpCreate, &proto.CreateRequest{Path: "/a", ACL: proto.OpenACL()}},
		{proto.OpExists, &proto.ExistsRequest{Path: "/a"}},
		{proto.OpSync, &proto.SyncRequest{Path: "/"}},
	} {
		if got := w.call(op.op, op.req); got.Err != proto.ErrThrottledOp || got.Zxid != s.lastZxid() || len(got.body) != 0 {
			t.Errorf("%v: %+v", op.op, got)
		}
	}
	w.must(proto.OpPing, nil)
	w.must(proto.OpCloseSession, nil)
	if n := metric(s, "throttled_ops"); n != "3" {
		t.Errorf("%s counted", n)
	}
	if n := metric(s, "cnt_request_throttle_queue_time_ms"); n != "4" { // ping doesn't queue
		t.Errorf("%s waits counted", n)
	}
}

// With request_stale_latency_check, the server should close a client with a request that has
// waited longer than its session's timeout.
func TestStaleRequestsAreDropped(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) {
		c.MinSessionTimeout = time.Millisecond
		c.Limits.RequestThrottle = RequestThrottle{MaxRequests: 1, StallTime: time.Millisecond, DropStale: true, StaleLatency: true}
	})
	busy := connect(t, s)
	busy.create("/a", nil, proto.ModePersistent)
	hold(t, s)
	busy.send(proto.OpSetData, setA("x"))
	eventually(t, "it is in process", func() bool { return s.outstanding.Load() == 1 })
	// A connection with a session timeout of 2 ms, as far as the throttle knows.
	w := dial(t, s)
	var c *conn
	s.clients.each(func(other *conn) {
		if other.session.id == 0 {
			c = other
		}
	})
	c.replies.mu.Lock()
	c.session.timeout = 2
	c.replies.mu.Unlock()
	c.reader.started = s.clock()
	if s.throttle.enter(c) {
		t.Fatal("it has a slot immediately")
	}
	w.wantClosed()
}
