package server

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/zkgo/zkgo/internal/ops/metrics"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/raftfsm"
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
	at := port{"metricsProvider.httpPort", m.Addr}
	srv, err := s.openHTTP(ctx, at, nil, metrics.Handler(picture{s}, m.Process), defaultAdminIdle)
	if err != nil {
		return at.failed(err)
	}
	s.metrics = srv
	return nil
}

// MetricsAddr returns the address for Prometheus, "" if there is none.
func (s *Server) MetricsAddr() string { return s.metrics.Addr() }

// roleChanged records how long the server had its role; m.mu is held, and m still has
// the old role.
func (s *Server) roleChanged(m *modes, to raftfsm.Role) {
	now := time.Now()
	if m.role.IsZero() {
		m.role = s.epoch // the zero Role is Looking
	}
	from := m.status.Role
	if from == to || !s.cfg.distributed() {
		return
	}
	if from == raftfsm.Looking {
		s.stats.elections.Observe(1, int64(now.Sub(m.role)))
	}
	if to == raftfsm.Looking {
		s.stats.looking.Add(1)
	}
	m.role = now
}

// countOutage records how long the server has not been serving; m.mu is held, and the
// server serves from now on.
func (s *Server) countOutage(m *modes) {
	if m.down.IsZero() {
		return
	}
	now := time.Now()
	s.stats.unavailable.Observe(1, int64(now.Sub(m.down)))
	switch m.status.Role {
	case raftfsm.Leader:
		s.stats.leaderless.Observe(1, int64(now.Sub(m.down)))
	case raftfsm.Follower:
		s.stats.syncTimes.Observe(1, int64(now.Sub(m.role)))
	case raftfsm.Observer:
		s.stats.obsSyncs.Observe(1, int64(now.Sub(m.role)))
	}
	m.down = time.Time{}
}

// inRole returns how long the server has had its role.
func (s *Server) inRole() time.Duration {
	s.modes.mu.Lock()
	defer s.modes.mu.Unlock()
	return time.Since(s.modes.role)
}

// metricsFromZooCfg translates the metricsProvider.* settings.
func (c *Config) metricsFromZooCfg(z *zoocfg.Config) {
	if m := &z.Metrics; m.Enabled {
		c.Metrics = &Metrics{Addr: net.JoinHostPort(m.HTTPHost, strconv.Itoa(m.HTTPPort)), Process: m.ExportJVMInfo}
	}
}
