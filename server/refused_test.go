package server

import (
	"encoding/binary"
	"log/slog"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// TestRefusalsAreLogged makes a server refuse clients for every reason that an operator
// should see. Each refusal is logged at WARN immediately, is counted, and can't flood the
// log.
func TestRefusalsAreLogged(t *testing.T) {
	t.Parallel()
	later := proto.ConnectRequest{TimeOut: 30000, LastZxidSeen: 1 << 60}
	gone := proto.ConnectRequest{TimeOut: 30000, SessionID: 1 << 56, Passwd: make([]byte, 16)}
	bare := gone
	bare.Passwd = nil
	handshake := func(req proto.ConnectRequest) func(*wire) {
		return func(w *wire) { w.write(proto.AppendFrame(nil, req.Append(nil))) }
	}
	frame := func(b ...byte) func(*wire) { return func(w *wire) { w.write(proto.AppendFrame(nil, b)) } }
	for _, tt := range []struct {
		name, says, counter string
		change              func(*Config)
		act                 func(*wire)
	}{
		{"later zxid", "has seen a later state", "clients_refused_later_zxid", nil, handshake(later)},
		{"session gone", "its session has ended", "clients_refused_session", nil, handshake(gone)},
		{"no password", "its session has ended", "clients_refused_session", nil, handshake(bare)},
		{"not the protocol", "its request is malformed", "clients_refused_malformed", nil, frame(1, 2, 3)},
		{"a long frame", "its request is malformed", "clients_refused_malformed", nil, func(w *wire) { w.write(binary.BigEndian.AppendUint32(nil, 1<<30)) }},
		{"a short request", "its request is malformed", "clients_refused_malformed", nil, func(w *wire) {
			w.handshake(proto.ConnectRequest{TimeOut: 30000})
			w.write(proto.AppendFrame(nil, []byte{1, 2, 3}))
		}},
		{"no identity", "has not authenticated", "clients_refused_unauthenticated", func(c *Config) { c.Auth.Require = []string{"digest"} }, func(w *wire) {
			w.handshake(proto.ConnectRequest{TimeOut: 30000})
			w.send(proto.OpExists, &proto.ExistsRequest{Path: "/"})
		}},
		{"wrong auth", "authentication failed", "auth_failed_count", nil, func(w *wire) {
			w.handshake(proto.ConnectRequest{TimeOut: 30000})
			w.send(proto.OpAuth, &proto.AuthPacket{Scheme: "nonsense"})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out logBuffer
			s := startServer(t, func(c *Config) {
				c.Logger = slog.New(slog.NewTextHandler(&out, nil))
				if tt.change != nil {
					tt.change(c)
				}
			})
			const times = 5
			for range times {
				w := dial(t, s)
				tt.act(w)
				for err := error(nil); err == nil; { // until the server closes it
					_, err = w.frame()
				}
			}
			eventually(t, "all are counted", func() bool {
				for _, m := range sourceOf(s).Metrics() {
					if m.Name == tt.counter {
						return m.Value == "5"
					}
				}
				return false
			})
			// The server counts a refusal before it logs it.
			eventually(t, "the first is logged", func() bool { return strings.Contains(out.String(), tt.says) })
			if text := out.String(); strings.Count(text, tt.says) != 1 || !strings.Contains(text, "level=WARN") {
				t.Errorf("the log after %d refusals:\n%s", times, text)
			}
		})
	}
}
