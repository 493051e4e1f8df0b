package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// A silent client loses its session and the session's znodes; a client that pings keeps
// it. In simulated time.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t)
		quiet, alive, other := dial(t, s), dial(t, s), dial(t, s)
		for _, w := range []*wire{quiet, alive, other} {
			if err := w.nc.SetDeadline(time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			w.handshake(proto.ConnectRequest{TimeOut: 10000, HasReadOnly: true})
		}
		quiet.create("/quiet", nil, proto.ModeEphemeral)
		alive.create("/alive", nil, proto.ModeEphemeral)
		other.call(proto.OpExists, &proto.ExistsRequest{Path: "/quiet", Watch: true})
		began := time.Now()
		for time.Since(began) < 30*time.Second {
			time.Sleep(3 * time.Second)
			alive.must(proto.OpPing, nil)
			if got, events := pingNext(other); len(events) > 0 {
				if after := time.Since(began); after < 10*time.Second || after > 16*time.Second {
					t.Errorf("expired after %v, want a timeout of 10s and at most two ticks more", after)
				}
			} else if got.Err != proto.Ok {
				t.Fatal(got.Err)
			}
		}
		quiet.wantClosed()
		if got := quiet.again(s, quiet.resp.Passwd); got.resp.SessionID != 0 {
			t.Errorf("the expired session was resumed: %+v", got.resp)
		}
		if got := other.call(proto.OpExists, &proto.ExistsRequest{Path: "/quiet"}); got.Err != proto.ErrNoNode {
			t.Errorf("the ephemeral of the expired session: %v", got.Err)
		}
		alive.get("/alive", false)
	})
}

// pingNext pings and returns the reply and the events before it.
func pingNext(w *wire) (reply, []proto.WatcherEvent) {
	w.send(proto.OpPing, nil)
	return w.next()
}

// The server closes a connection that is silent for its session's timeout, even if the
// session continues on another server.
func TestASilentConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t)
		w := connect(t, s)
		if err := w.nc.SetDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		w.wantClosed()
		if d := time.Since(began); d < 30*time.Second || d > 40*time.Second {
			t.Errorf("closed after %v", d)
		}
	})
}

// The server ignores requests queued after closeSession.
func TestNothingAfterCloseSession(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w, other := connect(t, s), connect(t, s)
	b := appendRequest(nil, 1, proto.OpCreate, &proto.CreateRequest{Path: "/e", ACL: proto.OpenACL(), Flags: 1})
	b = appendRequest(b, 2, proto.OpCloseSession, nil)
	b = appendRequest(b, 3, proto.OpCreate, &proto.CreateRequest{Path: "/late", ACL: proto.OpenACL()})
	w.write(b)
	for _, xid := range []int32{1, 2} {
		if got := w.recv(); got.Xid != xid || got.Err != proto.Ok || got.Zxid <= 0 {
			t.Errorf("%+v, want xid %d", got.ReplyHeader, xid)
		}
	}
	w.wantClosed()
	for _, path := range []string{"/e", "/late"} {
		if got := other.call(proto.OpExists, &proto.ExistsRequest{Path: path}); got.Err != proto.ErrNoNode {
			t.Errorf("%s: %v", path, got.Err)
		}
	}
}

// A server that its ensemble hasn't heard from for two thirds of the timeout answers
// nothing, not even a ping.
func TestTheGateCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t)
		confirmed := time.Now().Add(50 * time.Millisecond) // the server looks at the connections just before 4 s have passed
		s.contact.confirmed, s.contact.gated = func() time.Time { return confirmed }, true
		s.contact.fresh = s.contact.confirmed
		short, long := dial(t, s), connect(t, s)
		short.handshake(proto.ConnectRequest{TimeOut: 6000, HasReadOnly: true})
		time.Sleep(3900 * time.Millisecond)
		short.must(proto.OpPing, nil)
		time.Sleep(200 * time.Millisecond)
		short.write(appendRequest(nil, 1, proto.OpPing, nil))
		short.wantClosed()
		long.must(proto.OpPing, nil)
		time.Sleep(6 * time.Second) // syncLimit × tickTime have passed
		long.wantClosed()
	})
}
