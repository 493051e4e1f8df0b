package server

import (
	"math"

	"github.com/zkgo/zkgo/internal/ops/fourletter"
	"github.com/zkgo/zkgo/internal/ops/mntr"
)

// limits adds the metrics that show whether a configured limit affects clients.
func (v picture) limits(m *mntr.Lines) {
	s := v.s
	st := &s.stats
	if s.largeAt != math.MaxInt {
		m.Count("large_requests_rejected", st.largeRejected.Load())
	}
	if s.throttle != nil {
		m.Count("request_throttle_wait_count", st.throttleWaits.Load())
		m.Count("stale_requests_dropped", st.staleDropped.Load())
		m.Count("throttled_ops", st.throttledOps.Load())
	}
	if g := s.memory; g != nil {
		m.Int("memory_ceiling_bytes", g.Ceiling)
		m.Int("memory_used_bytes", g.Used.Load())
		full := int64(0)
		if g.Full.Load() {
			full = 1
		}
		m.Int("memory_full", full)
		m.Count("memory_writes_refused", g.Refused.Load())
		m.Int("memory_watch_bytes", s.watches.Held())
		m.Count("memory_watches_refused", st.watchesRefused.Load())
	}
}

// dropProbability is the probability that a new client is rejected now.
func (s *Server) dropProbability() string {
	chance, _ := s.tokens.State()
	return fourletter.Float(chance)
}
