package server

import (
	"net"
	"strconv"
	"time"

	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/server/metrics"
	"github.com/zkgo/zkgo/server/zoocfg"
)

// Metrics says where Prometheus finds the server's numbers, at /metrics.
type Metrics struct {
	Addr    string // host:port; port 0 takes a free one
	Process bool   // those of the Go runtime and the process too
}

// openMetrics opens the port for Prometheus, if there is to be one.
func (s *Server) openMetrics() error {
	m := s.cfg.Metrics
	if m == nil {
		return nil
	}
	srv, err := s.openHTTP(m.Addr, nil, metrics.Handler(picture{s}, m.Process), defaultAdminIdle)
	if err != nil {
		return &ListenError{Setting: "metricsProvider.httpPort", Addr: m.Addr, Err: err}
	}
	s.metrics = srv
	return nil
}

// MetricsAddr returns the address for Prometheus, "" without.
func (s *Server) MetricsAddr() string { return s.metrics.addr() }

// roleChanged keeps the times of what the server is in its ensemble; m.mu is
// held, and m has the role until now.
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

// countOutage counts how long nobody was served; m.mu is held, and from now on
// somebody is.
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

// inRole is how long the server has been what it is.
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
