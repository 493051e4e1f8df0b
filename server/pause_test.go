package server

import (
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// After a pause of the whole process the clients' pings wait unread in the
// sockets: nobody is closed for a silence that was the server's own.
func TestAPauseIsNobodysSilence(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := connect(t, s)
	var c *conn
	s.eachConn(func(one *conn) { c = one })
	// The clock of the connection stands as if the process had been stopped for
	// longer than the timeout.
	c.last.Store(s.clock() - int64(time.Hour))
	s.credit(s.clock())
	s.check(c, s.clock())
	w.must(proto.OpPing, nil)
	c.last.Store(s.clock() - int64(time.Hour))
	s.check(c, s.clock())
	w.wantClosed()
}
