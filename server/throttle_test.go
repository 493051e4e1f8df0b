package server

import (
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/proto"
)

func TestSessionThrottleRejectsClients(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) {
		c.Limits.ConnThrottle = &ConnThrottle{Tokens: 2, FillTime: 1000 * time.Hour, FillCount: 1, FreezeTime: -1, New: 1, Renewed: 1}
	})
	connect(t, s)
	w := connect(t, s)
	third := dial(t, s)
	third.write(proto.AppendFrame(nil, (&proto.ConnectRequest{TimeOut: 30000}).Append(nil)))
	third.wantClosed()
	w.create("/who-is-in-stays-in", nil, proto.ModePersistent)
	if n := s.stats.Rejected.Load(); n != 1 {
		t.Errorf("%d were counted as rejected", n)
	}
	if n := s.stats.TokenDeficit.Snapshot(time.Now()); n.Count != 2 || n.Max != 2 {
		t.Errorf("deficit %+v", n)
	}
	s.tokens = quarterRejected()
	if got := metric(s, "connection_drop_probability"); got != "0.25" {
		t.Errorf("zk_connection_drop_probability is %q", got)
	}
}

// quarterRejected returns a throttle that rejects a quarter of the clients.
func quarterRejected() *limits.SessionThrottle {
	t := limits.NewSessionThrottle(&limits.SessionRate{Tokens: 1, FillTime: time.Hour, DropIncrease: 0.25, New: 1}, 0)
	t.Take(0, false)
	t.Take(1, false)
	return t
}
