package server

import (
	"math"

	"github.com/zkgo/zkgo/internal/ops/fourletter"
)

// limits adds the metrics that show whether a configured limit affects clients.
func (m *monitor) limits(s *Server) {
	st := &s.stats
	if s.largeAt != math.MaxInt {
		m.count("large_requests_rejected", st.largeRejected.Load())
	}
	if s.throttle != nil {
		m.count("request_throttle_wait_count", st.throttleWaits.Load())
		m.count("stale_requests_dropped", st.staleDropped.Load())
		m.count("throttled_ops", st.throttledOps.Load())
	}
	if g := s.memory; g != nil {
		m.int("memory_ceiling_bytes", g.Ceiling)
		m.int("memory_used_bytes", g.Used.Load())
		full := int64(0)
		if g.Full.Load() {
			full = 1
		}
		m.int("memory_full", full)
		m.count("memory_writes_refused", g.Refused.Load())
		m.int("memory_watch_bytes", s.watches.Held())
		m.count("memory_watches_refused", st.watchesRefused.Load())
	}
}

// dropProbability is the probability that a new client is rejected now.
func (s *Server) dropProbability() string {
	chance, _ := s.tokens.State()
	return fourletter.Float(chance)
}
