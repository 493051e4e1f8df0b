package server

import (
	"github.com/zkgo/zkgo/internal/auth/schemes"
	"github.com/zkgo/zkgo/internal/limits"
)

// holding is how much of the server's memory a connection uses, in bytes.
type holding struct {
	watches  int64
	output   int64 // queued for the client, or being written
	input    int64 // a long request that has not arrived in full
	requests int64 // queued requests
	ids      int64
}

func (h holding) total() int64 { return h.watches + h.output + h.input + h.requests + h.ids }

func (h holding) ofWatches() int64 { return h.watches }

func (h holding) ofOutput() int64 { return h.output }

// holds returns what c holds, nothing once it is closed.
func (c *conn) holds() holding {
	c.replies.mu.Lock()
	defer c.replies.mu.Unlock()
	if c.replies.closed {
		return holding{}
	}
	h := holding{output: int64(c.replies.pushing), input: c.reader.inHeld.Load(), requests: int64(c.replies.held), ids: int64(schemes.Bytes(c.session.ids.All()))}
	if c.replies.out != nil {
		h.output += int64(len(c.replies.out.B))
	}
	if w := c.session.watcher.Load(); w != nil {
		h.watches = w.Held()
	}
	return h
}

// shed closes connections until the rest hold at most most bytes of what part selects,
// and returns how many it closed. [limits.Excess] selects them.
func (s *Server) shed(most int64, part func(holding) int64, why string) int {
	var shares []limits.Share[consumer]
	s.clients.each(func(c *conn) {
		h := c.holds()
		if n := part(h); n > 0 {
			shares = append(shares, limits.Share[consumer]{Handle: consumer{c, h}, Host: c.host, Bytes: n})
		}
	})
	excess := limits.Excess(shares, most)
	for _, one := range excess {
		c, h := one.Handle.c, one.Handle.h
		s.stats.Dropped.Add(1)
		s.complaints.Warn(s.clock(), why, "client", c.nc.RemoteAddr(), "bytes", one.Bytes, "bound", most,
			"watches", h.watches, "output", h.output, "input", h.input, "requests", h.requests)
		c.kill()
	}
	return len(excess)
}

// consumer is a connection and what it holds.
type consumer struct {
	c *conn
	h holding
}

// relieved closes the largest consumers if all connections together exceed a bound.
func (s *Server) relieved() {
	if s.queuedOut.Load() > int64(s.cfg.Limits.MaxOutputTotal) {
		s.shed(int64(s.cfg.Limits.MaxOutputTotal), holding.ofOutput, "closing the client with the most unread replies: all together have too many")
	}
	if s.watches.Held() > s.cfg.Limits.MaxWatchBytesTotal {
		s.shed(s.cfg.Limits.MaxWatchBytesTotal, holding.ofWatches, "closing the client with the most watches: all together have too many")
	}
}

// askRelief makes tend check the totals over all connections.
func (s *Server) askRelief() {
	select {
	case s.relieve <- struct{}{}:
	default:
	}
}

// clientPercent is the part of the memory ceiling that all connections together may
// hold while memory is short.
const clientPercent = 10

// shedForMemory closes connections because memory is short, if connections hold more
// than their part of the ceiling.
func (s *Server) shedForMemory() bool {
	return s.shed(s.memory.Percent(clientPercent), holding.total, "closing the client that holds the most memory: it is nearly used up") > 0
}
