package ensemble

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/internal/histogram"
)

// Counters are the live counters of an ensemble, which can be read at any time.
type Counters struct {
	Acks      perServer
	SnapsSent histogram.Summary
	Diffs     atomic.Int64
	sending   atomic.Int64 // snapshots being sent
}

// perServer keeps a Summary for each other server.
type perServer struct {
	mu sync.Mutex
	of map[uint64]*histogram.Summary
}

// observe counts d for a server.
func (p *perServer) observe(id uint64, d time.Duration) {
	p.mu.Lock()
	s := p.of[id]
	if s == nil {
		if p.of == nil {
			p.of = make(map[uint64]*histogram.Summary)
		}
		s = new(histogram.Summary)
		p.of[id] = s
	}
	p.mu.Unlock()
	s.Observe(1, int64(d))
}

// All returns the summaries by server id.
func (p *perServer) All() map[uint64]*histogram.Summary {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.of)
}

// sendingSnapshot counts a snapshot that is being sent to a follower, until the caller
// calls done.
func (c *Counters) sendingSnapshot() (done func()) {
	c.SnapsSent.Observe(1, c.sending.Add(1))
	return func() { c.sending.Add(-1) }
}
