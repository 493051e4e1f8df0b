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
	say := func() string {
		var b strings.Builder
		announce(slog.New(slog.NewTextHandler(&b, nil)), s, zoocfg.Default())
		return b.String()
	}
	text := say()
	for _, want := range []string{
		"addresses=" + s.ClientAddr(), "data=" + filepath.Join(dir, "zkgo-data"), "commands=http://" + s.AdminAddr() + "/commands",
		"metrics=http://" + s.MetricsAddr() + "/metrics", "zkgo server zoo.cfg",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if err := os.WriteFile("zoo.cfg", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text := say(); !strings.Contains(text, "zoo.cfg in the working directory is not used") {
		t.Errorf("not a word of the zoo.cfg:\n%s", text)
	}
}
