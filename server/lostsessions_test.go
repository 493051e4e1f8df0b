package server

import (
	"net"
	"testing"

	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/proto"
)

// A client that connects again and again without closing a session can't fill the
// session table. Other addresses can still begin sessions, and this address can still
// resume its own.
func TestSessionsOfOneAddressAreBounded(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.ClientAddr, c.Limits.MaxClientCnxns = "127.0.0.1:0", 2 })
	lost := func() int {
		s.clients.mu.Lock()
		defer s.clients.mu.Unlock()
		n, _ := s.clients.lost.Of("127.0.0.2")
		return n
	}
	const most = 2 * limits.LostSessionsPerCnxn
	var last *wire
	for i := range most {
		last = tcp(t, s, "127.0.0.2")
		if last.resp.TimeOut == 0 {
			t.Fatalf("session %d is refused", i)
		}
		last.nc.Close()
		eventually(t, "the session has lost its connection", func() bool { return lost() == i+1 })
	}
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
	nc, err := d.Dial("tcp", s.ClientAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	refused := &wire{t: t, nc: nc}
	refused.write(proto.AppendFrame(nil, (&proto.ConnectRequest{TimeOut: 30000}).Append(nil)))
	refused.wantClosed()
	if w := tcp(t, s, "127.0.0.3"); w.resp.TimeOut == 0 {
		t.Error("another address is refused")
	}
	// A session that is resumed, or ends, makes room.
	again, err := d.Dial("tcp", s.ClientAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	back := &wire{t: t, nc: again}
	back.handshake(proto.ConnectRequest{TimeOut: 30000, SessionID: last.resp.SessionID, Passwd: last.resp.Passwd})
	if back.resp.SessionID != last.resp.SessionID || lost() != most-1 {
		t.Errorf("session %x has come back as %x, and %d are lost", last.resp.SessionID, back.resp.SessionID, lost())
	}
	back.must(proto.OpCloseSession, nil)
	eventually(t, "the session is over", func() bool { return sourceOf(s).Server().Connections <= 1 })
	if w := tcp(t, s, "127.0.0.2"); w.resp.TimeOut == 0 || lost() != most-1 {
		t.Errorf("there is room, and a session is refused; %d are lost", lost())
	}
}

// An address has a bound too if it may have any number of connections.
func TestSessionsAreBoundedWithoutMaxClientCnxns(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.ClientAddr, c.Limits.MaxClientCnxns = "127.0.0.1:0", -1 })
	if w := tcp(t, s, "127.0.0.2"); w.resp.TimeOut == 0 {
		t.Fatal("the first session is refused")
	}
	s.clients.mu.Lock()
	for sid := range int64(limits.MaxLostSessions) {
		s.clients.lost.Add(sid+1, "127.0.0.2")
	}
	s.clients.mu.Unlock()
	nc, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}).Dial("tcp", s.ClientAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	refused := &wire{t: t, nc: nc}
	refused.write(proto.AppendFrame(nil, (&proto.ConnectRequest{TimeOut: 30000}).Append(nil)))
	refused.wantClosed()
}
