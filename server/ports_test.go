package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/listen"
	"github.com/zkgo/zkgo/internal/ops/metrics"
)

// TestPortsAreTriedFirst: the error for an unavailable port names the setting, and no
// data directory is left behind.
func TestPortsAreTriedFirst(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	for setting, change := range map[string]func(*Config){
		"clientPort":               func(c *Config) { c.ClientAddr = taken },
		"admin.serverPort":         func(c *Config) { c.Admin = &Admin{Addr: taken} },
		"metricsProvider.httpPort": func(c *Config) { c.Metrics = &Metrics{Addr: taken, Handler: metrics.Handler} },
	} {
		dir := filepath.Join(t.TempDir(), "data")
		cfg := Config{ClientAddr: "127.0.0.1:0", DataDir: dir}
		change(&cfg)
		s, err := Start(t.Context(), cfg)
		var port *ListenError
		if !errors.As(err, &port) || port.Setting != setting || port.Addr != taken || !strings.Contains(err.Error(), "in use by another process") {
			t.Errorf("%s: %v", setting, err)
		}
		if s != nil {
			s.Close() //nolint:errcheck // the test has failed
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a data directory is left behind: %v", setting, err)
		}
	}
}

// cancelAt cancels a context when a message is logged.
type cancelAt struct {
	slog.Handler
	text   string
	cancel func()
}

func (h cancelAt) Handle(ctx context.Context, r slog.Record) error {
	if strings.Contains(r.Message, h.text) {
		h.cancel()
	}
	return h.Handler.Handle(ctx, r)
}

// TestStartWaitsForHostNames: every port for clients and operators waits for its host
// name, the end of the context ends the wait, and the error names the setting.
func TestStartWaitsForHostNames(t *testing.T) {
	t.Parallel()
	const never = "no..name:0" // not valid in DNS, so no server is asked
	for setting, change := range map[string]func(*Config){
		"clientPort":               func(c *Config) { c.ClientAddr = never },
		"admin.serverPort":         func(c *Config) { c.Admin = &Admin{Addr: never} },
		"metricsProvider.httpPort": func(c *Config) { c.Metrics = &Metrics{Addr: never, Handler: metrics.Handler} },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var out logBuffer
		cfg := Config{Memory: true, Quorum: Quorum{BindTries: -1}, Logger: slog.New(cancelAt{slog.NewTextHandler(&out, nil), "waiting for the host name", cancel})}
		change(&cfg)
		s, err := Start(ctx, cfg)
		cancel()
		var port *ListenError
		if !errors.As(err, &port) || port.Setting != setting || !errors.Is(err, context.Canceled) || listen.HostProblem(err) == "" {
			t.Errorf("%s: %v", setting, err)
		}
		if !strings.Contains(out.String(), "setting="+setting) {
			t.Errorf("%s: the log has %q", setting, out.String())
		}
		if s != nil {
			_ = s.Close()
		}
	}
}
