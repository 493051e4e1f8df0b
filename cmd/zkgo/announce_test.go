package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/prom"
)

// TestFirstLinesSayWhereThingsAre checks that the log names the data directory as an
// absolute path, the listening addresses, and an unused zoo.cfg in the data
// directory.
func TestFirstLinesSayWhereThingsAre(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s, err := server.Start(t.Context(), server.Config{Memory: true, ClientAddr: "127.0.0.1:0",
		Admin: &server.Admin{Addr: "127.0.0.1:0"}, Metrics: &server.Metrics{Addr: "127.0.0.1:0", Handler: prom.Handler}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	say := func(z *zoocfg.Config) string {
		var b strings.Builder
		announce(slog.New(slog.NewTextHandler(&b, nil)), s, z)
		return b.String()
	}
	text := say(zoocfg.Default())
	for _, want := range []string{
		"addresses=" + s.ClientAddr(), "data=" + filepath.Join(dir, "zkgo-data"), "commands=http://" + s.AdminAddr() + "/commands",
		"metrics=http://" + s.MetricsAddr() + "/metrics", "zkgo server zoo.cfg", "zkgo cli -server " + s.ClientAddr(),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, name := range []string{"zoo.cfg", "other.cfg"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, warned := range map[string]bool{"": true, "other.cfg": true, "zoo.cfg": false, filepath.Join(dir, "zoo.cfg"): false} {
		z := zoocfg.Default()
		z.Path = path
		if text := say(z); strings.Contains(text, "ignoring the zoo.cfg in the working directory") != warned {
			t.Errorf("started with %q, warned %v:\n%s", path, !warned, text)
		}
	}
}

// TestNextStep: the log suggests a command that fits the addresses.
func TestNextStep(t *testing.T) {
	t.Parallel()
	ensemble := zoocfg.Default()
	ensemble.Servers = []zoocfg.Server{{ID: 1}, {ID: 2}, {ID: 3}}
	secure := zoocfg.Default()
	secure.ClientPort = zoocfg.Unset
	for _, tc := range []struct {
		addr string
		z    *zoocfg.Config
		want string
	}{
		{"[::]:2181", zoocfg.Default(), "zkgo cli -server localhost:2181"},
		{"10.0.0.1:2181", zoocfg.Default(), "zkgo cli -server 10.0.0.1:2181"},
		{"[::1]:2181", zoocfg.Default(), "zkgo cli -server [::1]:2181"},
		{"0.0.0.0:2182", ensemble, "zkgo health --server localhost:2182 --wait 1m"},
		{"", zoocfg.Default(), ""},
		{"[::]:2281", secure, ""},
	} {
		if got := nextStep(tc.addr, tc.z); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.addr, got, tc.want)
		}
	}
}
