package server

import (
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// After a pause of the whole process the clients' pings are still unread in the
// sockets. The server must not close a client for the server's own silence.
func TestPauseDoesNotCountAsSilence(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := connect(t, s)
	var c *conn
	s.clients.each(func(one *conn) { c = one })
	// The connection's clock is set as if the process had been stopped for longer than
	// the timeout.
	c.session.last.Store(s.clock() - int64(time.Hour))
	s.clients.credit(s.clock())
	c.check(s.clock())
	w.must(proto.OpPing, nil)
	c.session.last.Store(s.clock() - int64(time.Hour))
	c.check(s.clock())
	w.wantClosed()
}
