package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

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
	s.complaints.catchUp(s.clock() + int64(complaintEvery))
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

func TestComplaintsOfAKindHaveTheirTime(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	k := complaints{log: slog.New(slog.NewTextHandler(&out, nil))}
	every := int64(complaintEvery)
	k.warn(0, "a", "n", 1)
	k.warn(1, "b", "n", 2)
	k.warn(2, "a", "n", 3)
	k.warn(3, "a", "n", 4)
	k.catchUp(4)
	if got := strings.Count(out.String(), "\n"); got != 2 {
		t.Errorf("%d lines at first:\n%s", got, &out)
	}
	out.Reset()
	k.warn(every, "a", "n", 5)
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "n=5 others=2") {
		t.Errorf("after a while: %s", got)
	}
	out.Reset()
	k.catchUp(3 * every)
	if out.Len() != 0 {
		t.Errorf("nothing happened, and this is logged: %s", &out)
	}
}
