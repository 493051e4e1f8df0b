package server

import (
	"bytes"
	"encoding/binary"
	"sync"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// A client that sends without waiting has no more requests in flight than
// globalOutstandingLimit, so another client's single request doesn't wait for all these
// requests.
func TestGreedyClientDoesNotStarveOthers(t *testing.T) {
	t.Parallel()
	const limit, many = 3 * spared, 2000
	s := startServer(t, func(c *Config) { c.Limits.GlobalOutstanding = limit })
	greedy, modest := connect(t, s), connect(t, s)
	greedy.create("/a", nil, proto.ModePersistent)
	modest.create("/b", nil, proto.ModePersistent)
	base := s.lastZxid()
	release := hold(t, s)
	var b []byte
	for i := range int32(many) {
		b = appendRequest(b, i+100, proto.OpSetData, setA("x"))
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if _, err := greedy.nc.Write(b); err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "the limit is reached", func() bool { return s.outstanding.Load() > limit })
	modest.send(proto.OpSetData, &proto.SetDataRequest{Path: "/b", Version: -1})
	eventually(t, "the modest client's request is accepted", func() bool { return s.outstanding.Load() == limit+2 })
	release()
	if got := modest.recv(); got.Err != proto.Ok || got.Zxid-base > limit+2 {
		t.Errorf("%+v: %d transactions were before it, want at most %d", got.ReplyHeader, got.Zxid-base-1, limit+1)
	}
	for i := range int32(many) {
		if got := greedy.recv(); got.Xid != i+100 || got.Err != proto.Ok {
			t.Fatalf("reply %d: %+v", i, got.ReplyHeader)
		}
	}
	<-sent
}

// The total size of large requests is bounded. The server should close a client with a
// request that exceeds the bound, whether the request has arrived or only its length. A
// completed request makes room.
func TestLargeRequests(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.Limits.LargeRequestAbove, c.Limits.LargeRequestMax = 1000, 2500 })
	first, second, third, small := connect(t, s), connect(t, s), connect(t, s), connect(t, s)
	first.create("/a", nil, proto.ModePersistent)
	release := hold(t, s)
	large := setA(string(bytes.Repeat([]byte("x"), 1200)))
	first.send(proto.OpSetData, large)
	second.send(proto.OpSetData, large)
	small.send(proto.OpSetData, setA("y"))
	eventually(t, "all three are in flight", func() bool { return s.outstanding.Load() == 3 })
	if got, want := s.large.Held(), int64(2*(8+4+2+4+1200+4)); got != want {
		t.Errorf("%d bytes count as large requests, want %d", got, want)
	}
	third.write(binary.BigEndian.AppendUint32(nil, 1200)) // only a length
	eventually(t, "its length is refused", func() bool { return s.stats.LargeRejected.Load() == 1 })
	release()
	for _, w := range []*wire{first, second, small} {
		if got := w.recv(); got.Err != proto.Ok {
			t.Errorf("%+v", got.ReplyHeader)
		}
	}
	eventually(t, "no bytes count", func() bool { return s.large.Held() == 0 })

	// A request that can never fit closes its connection as soon as its length is
	// known.
	fifth := connect(t, s)
	fifth.write(binary.BigEndian.AppendUint32(nil, 2501))
	fifth.wantClosed()
	if n := metric(s, "large_requests_rejected"); n != "2" {
		t.Error("it was closed for another reason")
	}
	// A large request that is answered immediately should also free its bytes immediately.
	first.call(proto.OpExists, &proto.ExistsRequest{Path: "/" + string(bytes.Repeat([]byte("x"), 1200))})
	eventually(t, "no bytes count again", func() bool { return s.large.Held() == 0 })
	first.send(proto.OpSetData, large)
	if got := first.recv(); got.Err != proto.Ok {
		t.Errorf("%+v", got.ReplyHeader)
	}
}

// A request that arrives while others use all the room should close its connection once it
// is complete.
func TestLargeRequestFindsNoRoom(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.Limits.LargeRequestAbove, c.Limits.LargeRequestMax = 1000, 2000 })
	connect(t, s)
	var other *conn
	s.clients.each(func(c *conn) { other = c })
	c := newConn(s, other.nc)
	if err := c.reader.admitLarge(1200, false); err != nil {
		t.Fatal(err)
	}
	s.large.Take(1200)
	if err := c.reader.admitLarge(1200, false); err != nil {
		t.Errorf("an admitted request is checked again: %v", err)
	}
	if err := c.reader.admitLarge(1200, true); err == nil || s.large.Held() != 1200 || c.reader.charge != (charge{}) {
		t.Errorf("%v, %d bytes, %+v", err, s.large.Held(), c.reader.charge)
	}
	s.large.Return(400)
	if err := c.reader.admitLarge(1200, true); err != nil || s.large.Held() != 2000 || c.reader.charge.large != 1200 {
		t.Errorf("%v, %d bytes, %+v", err, s.large.Held(), c.reader.charge)
	}
}

// metric returns a value of mntr, "" if there is none.
func metric(s *Server, name string) string {
	for _, m := range sourceOf(s).Metrics() {
		if m.Name == name {
			return m.Value
		}
	}
	return ""
}

// hold keeps the server from applying anything until release is called or the test
// ends.
func hold(t testing.TB, s *Server) (release func()) {
	s.tree.RLock()
	release = sync.OnceFunc(s.tree.RUnlock)
	t.Cleanup(release)
	return release
}
