package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/proto"
)

// A client must not fill the log, neither with many refused requests nor with a long
// line.
func TestRefusalsDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := startServer(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&out, nil)) })
	const attempts = 200
	for range attempts {
		w := connect(t, s)
		if got := w.call(proto.OpAuth, &proto.AuthPacket{Scheme: strings.Repeat("s", 100<<10), Auth: []byte("x")}); got.Err != proto.ErrAuthFailed {
			t.Fatal(got.Err)
		}
		w.wantClosed()
	}
	s.complaints.CatchUp(s.clock() + int64(limits.ComplaintEvery))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	var about []string
	for _, l := range lines {
		if strings.Contains(l, "authentication failed") {
			about = append(about, l)
		}
	}
	if len(about) != 2 || len(out.String()) > 10_000 {
		t.Errorf("%d lines about %d refusals, and %d bytes", len(about), attempts, out.Len())
	}
	if n := len(about); n > 0 && !strings.Contains(about[n-1], "others=198") {
		t.Errorf("the last line does not count the others: %s", about[n-1])
	}
}
