package server

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		"metricsProvider.httpPort": func(c *Config) { c.Metrics = &Metrics{Addr: taken} },
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
