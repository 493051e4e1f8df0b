package server

import (
	"cmp"
	"slices"
)

// holding is what a connection takes of the server's memory, in bytes.
type holding struct {
	watches  int64
	output   int64 // queued for the client, or being written
	input    int64 // a long request that has not arrived whole
	requests int64 // in its queue
	ids      int64
}

func (h holding) total() int64 { return h.watches + h.output + h.input + h.requests + h.ids }

func (h holding) ofWatches() int64 { return h.watches }

func (h holding) ofOutput() int64 { return h.output }

// holds returns what c holds; nothing once it is being closed.
func (c *conn) holds() holding {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return holding{}
	}
	h := holding{output: int64(c.pushing), input: c.inHeld.Load(), requests: int64(c.held), ids: int64(identityBytes(c.identities()))}
	if c.out != nil {
		h.output += int64(len(c.out.b))
	}
	if w := c.watcher.Load(); w != nil {
		h.watches = w.Held()
	}
	return h
}

// maxShed is how many connections are closed at a time.
const maxShed = 256

// consumer is a connection and what it holds of what has become too much.
type consumer struct {
	c *conn
	n int64
	h holding
}

// shed closes connections until the others hold no more than most of what part says, and
// returns how many it closed. The address whose connections hold the most comes first, and
// of those the one that holds the most: a client that takes many connections has no more
// than one that takes one.
func (s *Server) shed(most int64, part func(holding) int64, why string) int {
	total := int64(0)
	hosts, sums := make(map[string][]consumer), make(map[string]int64)
	s.eachConn(func(c *conn) {
		h := c.holds()
		if n := part(h); n > 0 {
			hosts[c.host] = append(hosts[c.host], consumer{c, n, h})
			sums[c.host] += n
			total += n
		}
	})
	if total <= most {
		return 0
	}
	for _, cs := range hosts {
		slices.SortFunc(cs, func(a, b consumer) int { return cmp.Compare(b.n, a.n) })
	}
	closed := 0
	for ; total > most && closed < maxShed; closed++ {
		largest, sum := "", int64(0)
		for host, n := range sums {
			if n > sum {
				largest, sum = host, n
			}
		}
		one := hosts[largest][0]
		hosts[largest] = hosts[largest][1:]
		sums[largest] -= one.n
		total -= one.n
		s.stats.dropped.Add(1)
		s.complaints.warn(s.clock(), why, "client", one.c.nc.RemoteAddr(), "bytes", one.n, "bound", most,
			"watches", one.h.watches, "output", one.h.output, "input", one.h.input, "requests", one.h.requests)
		one.c.kill()
	}
	return closed
}

// relieved closes whoever holds the most of what all connections together hold too much of.
func (s *Server) relieved() {
	if s.queuedOut.Load() > int64(s.cfg.MaxOutputTotal) {
		s.shed(int64(s.cfg.MaxOutputTotal), holding.ofOutput, "closing the client with the most unread replies: all together have too many")
	}
	if s.watches.Held() > s.cfg.MaxWatchBytesTotal {
		s.shed(s.cfg.MaxWatchBytesTotal, holding.ofWatches, "closing the client with the most watches: all together have too many")
	}
}

// askRelief has a look taken at what all connections hold.
func (s *Server) askRelief() {
	select {
	case s.relieve <- struct{}{}:
	default:
	}
}

// clientPercent is the part of the memory ceiling that connections may hold together while
// memory is short.
const clientPercent = 10

// shedForMemory closes connections because memory is short, as long as they hold so much
// that it is theirs to give.
func (s *Server) shedForMemory() bool {
	return s.shed(s.memory.part(clientPercent), holding.total, "closing the client that holds the most memory: it is nearly used up") > 0
}
