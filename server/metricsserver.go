package server

import (
	"fmt"
	"net"
	"strconv"

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
	srv, err := s.openHTTP(m.Addr, metrics.Handler(picture{s}, m.Process), defaultAdminIdle)
	if err != nil {
		return fmt.Errorf("metricsProvider.httpPort: %w", err)
	}
	s.metrics = srv
	return nil
}

// MetricsAddr returns the address for Prometheus, "" without.
func (s *Server) MetricsAddr() string { return s.metrics.addr() }

// metricsFromZooCfg translates the metricsProvider.* settings.
func (c *Config) metricsFromZooCfg(z *zoocfg.Config) {
	if m := &z.Metrics; m.Enabled {
		c.Metrics = &Metrics{Addr: net.JoinHostPort(m.HTTPHost, strconv.Itoa(m.HTTPPort)), Process: m.ExportJVMInfo}
	}
}
