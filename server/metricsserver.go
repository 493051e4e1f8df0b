package server

import (
	"context"

	"github.com/zkgo/zkgo/internal/listen"
	"github.com/zkgo/zkgo/internal/ops/metrics"
)

// Metrics configures the port where Prometheus reads metrics, at /metrics.
type Metrics struct {
	Addr    string // host:port; port 0 picks a free one
	Process bool   // add the metrics of the Go runtime and the process
}

// openMetrics opens the port for Prometheus, if it is configured.
func (s *Server) openMetrics(ctx context.Context) error {
	m := s.cfg.Metrics
	if m == nil {
		return nil
	}
	at := listen.At("metricsProvider.httpPort", m.Addr)
	srv, err := s.openHTTP(ctx, at, nil, metrics.Handler(sourceOf(s), m.Process), defaultAdminIdle)
	if err != nil {
		return listenError(at, err)
	}
	s.metrics = srv
	return nil
}

// MetricsAddr returns the address for Prometheus, "" if there is none.
func (s *Server) MetricsAddr() string { return s.metrics.Addr() }
