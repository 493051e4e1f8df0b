package server

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/pipe"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/watch"
)

// meddler is an Interceptor made of functions.
type meddler struct {
	accept  func(net.Conn) net.Conn
	verdict func(Request) Verdict
	live    atomic.Pointer[[]int64]
}

func (m *meddler) Accept(nc net.Conn) net.Conn {
	if m.accept != nil {
		return m.accept(nc)
	}
	return nc
}

func (m *meddler) Request(r Request) Verdict {
	if m.verdict != nil {
		return m.verdict(r)
	}
	return Verdict{}
}

func (m *meddler) Live(ids []int64) []int64 {
	if p := m.live.Load(); p != nil {
		return *p
	}
	return ids
}

func with(m *meddler) func(*Config) { return func(c *Config) { c.Env.Interceptor = m } }

func TestInterceptorRefusesRequests(t *testing.T) {
	t.Parallel()
	s := startServer(t, with(&meddler{verdict: func(r Request) Verdict {
		if r.Op == proto.OpSetData || r.Op == proto.OpExists {
			return Verdict{Code: proto.ErrSystemError}
		}
		return Verdict{}
	}}))
	w := connect(t, s)
	// Pipelined requests: the replies keep the order, and the refused write isn't
	// executed.
	var b []byte
	b = appendRequest(b, 1, proto.OpCreate, &proto.CreateRequest{Path: "/a", Data: []byte("1"), ACL: proto.OpenACL()})
	b = appendRequest(b, 2, proto.OpSetData, &proto.SetDataRequest{Path: "/a", Data: []byte("2"), Version: -1})
	b = appendRequest(b, 3, proto.OpExists, &proto.ExistsRequest{Path: "/a"})
	b = appendRequest(b, 4, proto.OpGetData, &proto.GetDataRequest{Path: "/a"})
	w.write(b)
	want := []proto.Code{proto.Ok, proto.ErrSystemError, proto.ErrSystemError, proto.Ok}
	for i, code := range want {
		got := w.recv()
		if got.Xid != int32(i+1) || got.Err != code {
			t.Fatalf("answer %d: %+v", i+1, got.ReplyHeader)
		}
		if i == 3 {
			var resp proto.GetDataResponse
			if w.decode(got, &resp); string(resp.Data) != "1" {
				t.Errorf("data %q", resp.Data)
			}
		}
	}
}

func TestInterceptorLosesAnswers(t *testing.T) {
	t.Parallel()
	for _, lose := range []bool{true, false} {
		s := startServer(t, with(&meddler{verdict: func(r Request) Verdict {
			second := r.Op == proto.OpCreate && r.Xid == 2
			return Verdict{Lose: lose && second, Drop: !lose && second}
		}}))
		w := connect(t, s)
		var b []byte
		b = appendRequest(b, 1, proto.OpCreate, &proto.CreateRequest{Path: "/a", ACL: proto.OpenACL()})
		b = appendRequest(b, 2, proto.OpCreate, &proto.CreateRequest{Path: "/b", ACL: proto.OpenACL()})
		b = appendRequest(b, 3, proto.OpCreate, &proto.CreateRequest{Path: "/c", ACL: proto.OpenACL()})
		w.write(b)
		if lose { // the requests before it are answered
			if got := w.recv(); got.Xid != 1 || got.Err != proto.Ok {
				t.Fatalf("%+v", got.ReplyHeader)
			}
			w.wantClosed()
		} else {
			for _, err := w.frame(); err == nil; _, err = w.frame() {
			}
		}
		other := connect(t, s)
		for path, want := range map[string]bool{"/a": true, "/b": lose, "/c": false} {
			got := other.call(proto.OpExists, &proto.ExistsRequest{Path: path})
			if (got.Err == proto.Ok) != want {
				t.Errorf("lose %v, %s: %v", lose, path, got.Err)
			}
		}
	}
}

func TestInterceptorRejectsClients(t *testing.T) {
	t.Parallel()
	var shut atomic.Bool
	s := startServer(t, with(&meddler{accept: func(nc net.Conn) net.Conn {
		if shut.Load() {
			return nil
		}
		return nc
	}}))
	connect(t, s)
	shut.Store(true)
	w := dial(t, s)
	w.wantClosed()
}

// A live client's session expires when the Interceptor hides it.
func TestInterceptorHidesLiveClients(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	m := &meddler{}
	s := startServer(t, with(m), func(c *Config) {
		now := c.withDefaults().Env.Now
		c.Env.Now = func() time.Time { return now().Add(time.Duration(ahead.Load())) }
	})
	one, other := connect(t, s), connect(t, s)
	m.live.Store(&[]int64{other.resp.SessionID})
	settled := make(chan proto.Code, 1)
	barrier := func() {
		t.Helper()
		err := s.Node().Propose(&raftfsm.Command{Kind: raftfsm.KindSync, Op: proto.OpSync,
			Waiter: s.Waiter(func(a *raftfsm.Applied) { settled <- a.Code })})
		if err != nil || <-settled != proto.Ok {
			t.Fatal(err)
		}
	}
	barrier()
	s.Node().Kick() // both sessions' deadlines begin before the clock jumps
	ahead.Store(int64(40 * time.Second))
	s.Node().Kick()
	barrier()
	one.wantClosed()
	other.get("/", false)
}

func TestServeConnAndWatches(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	client, served := pipe.New("a", "b")
	s.ServeConn(served)
	t.Cleanup(func() { client.Close() })
	w := &wire{t: t, nc: client}
	w.handshake(proto.ConnectRequest{TimeOut: 30000})
	w.get("/", true)
	w.must(proto.OpGetChildren, &proto.GetChildrenRequest{Path: "/", Watch: true})
	kinds := map[watch.Kind]bool{}
	for _, got := range s.Watches() {
		if got.Path != "/" || got.Session != w.resp.SessionID {
			t.Errorf("%+v", got)
		}
		kinds[got.Kind] = true
	}
	if len(kinds) != 2 || !kinds[watch.Data] || !kinds[watch.Child] {
		t.Error(kinds)
	}
}
