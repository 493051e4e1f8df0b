package server

import (
	"net"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// slowReader returns a client with a session timeout of a second that has asked for so
// many megabytes over a socket with small buffers.
func slowReader(t *testing.T, s *Server, megabytes int) *wire {
	t.Helper()
	nc, err := net.Dial("tcp", s.ClientAddr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if err := nc.(*net.TCPConn).SetReadBuffer(32 << 10); err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, nc: nc}
	w.handshake(proto.ConnectRequest{TimeOut: 1000, HasReadOnly: true})
	var b []byte
	for i := range megabytes {
		b = appendRequest(b, int32(i), proto.OpGetData, &proto.GetDataRequest{Path: "/big"})
	}
	w.write(b)
	return w
}

// A client that reads its replies slowly, and sends nothing, should keep its connection and
// session while it reads something. A client that reads nothing should lose both in time.
func TestASlowReaderThatMakesProgressStays(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) {
		c.ClientAddr, c.TickTime, c.MinSessionTimeout = "127.0.0.1:0", 250*time.Millisecond, 500*time.Millisecond
	})
	connect(t, s).create("/big", make([]byte, 1<<20-1000), proto.ModePersistent)
	const megabytes = 12
	slow, deaf := slowReader(t, s, megabytes), slowReader(t, s, megabytes)
	begun := time.Now()
	room := make([]byte, 256<<10)
	tick := time.NewTicker(cost.InShort(50*time.Millisecond, 100*time.Millisecond))
	defer tick.Stop()
	for left := megabytes * (1<<20 - 1000); left > 0; <-tick.C {
		n, err := slow.nc.Read(room)
		if left -= n; err != nil && left > 0 {
			t.Fatalf("after %v, with %d bytes left: %v", time.Since(begun), left, err)
		}
	}
	if took := time.Since(begun); took < 2*time.Second {
		t.Skipf("everything was read in %v: the client was not slow", took)
	}
	eventually(t, "the session of the client that reads nothing has ended", func() bool {
		return sourceOf(s).Server().Connections <= 2
	})
	_ = deaf
}
