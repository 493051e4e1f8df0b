package quorum

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newHub starts a hub on the host of its server.
func newHub(t *testing.T, m *Memory, self Identity, log io.Writer) *Hub {
	t.Helper()
	name := "s" + strings.Split(self.ServerID, ".")[0]
	h, err := Listen(m.Host(name), name+":1", self, Security{}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// member opens a stream as a member of ensemble 1, with its own connection.
func member(conn net.Conn, kind Kind, code Code, from, to string) error {
	self := Identity{ServerID: from, Cluster: ClusterID{1}}.named()
	said := hello{version: version, kind: kind, code: code, to: to, from: self, challenge: newChallenge()}
	by := time.Now().Add(30 * time.Second)
	if err := writeHello(conn, &said, by); err != nil {
		return err
	}
	answer, err := readHello(conn, by)
	if err != nil {
		return err
	}
	if answer.code != Accepted {
		return &RefusedError{Code: answer.code}
	}
	said.code = code
	verdict, err := verifyAnswer(conn, self, &said, &answer, by)
	if verdict != Accepted {
		return &RefusedError{Code: verdict}
	}
	return err
}

func echo(conn net.Conn, _ Identity) {
	_, _ = io.Copy(conn, conn)
	_ = conn.Close()
}

func TestHandshake(t *testing.T) {
	t.Parallel()
	x, y := ClusterID{1}, ClusterID{2}
	tests := []struct {
		name string
		kind Kind
		a, b Identity
		to   string
		want Code
	}{
		{"members of one ensemble", Raft, Identity{ServerID: "1", Cluster: x}, Identity{ServerID: "2", Cluster: x}, "2", Accepted},
		{"lists may differ then", Forward, Identity{ServerID: "1", Cluster: x, List: Hash{1}}, Identity{ServerID: "2", Cluster: x, List: Hash{2}}, "2", Accepted},
		{"two ensembles", Raft, Identity{ServerID: "1", Cluster: x}, Identity{ServerID: "2", Cluster: y}, "2", WrongCluster},
		{"another disk of the same server", Raft, Identity{ServerID: "1", Cluster: x}, Identity{ServerID: "2.1", Cluster: x}, "2", WrongTarget},
		{"another server", Liveness, Identity{ServerID: "1", Cluster: x}, Identity{ServerID: "3", Cluster: x}, "2", WrongTarget},
		{"not a member yet", Raft, Identity{ServerID: "1", Cluster: x}, Identity{ServerID: "2"}, "2", NotReady},
		{"neither is a member", Raft, Identity{ServerID: "1"}, Identity{ServerID: "2"}, "2", NotReady},
		{"probe before formation", Probe, Identity{ServerID: "1"}, Identity{ServerID: "2"}, "", Accepted},
		{"probe of another list", Probe, Identity{ServerID: "1", List: Hash{1}}, Identity{ServerID: "2", List: Hash{2}}, "", WrongList},
		{"probe of a member", Probe, Identity{ServerID: "1", List: Hash{1}}, Identity{ServerID: "2", Cluster: x, List: Hash{2}}, "", Accepted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log logBuffer
			m := NewMemory()
			a, b := newHub(t, m, tt.a, &log), newHub(t, m, tt.b, &log)
			b.Handle(tt.kind, echo)
			conn, theirs, err := a.Dial(t.Context(), tt.kind, b.Addr().String(), tt.to)
			want := tt.b.named()
			if want.Cluster != tt.a.Cluster || tt.want != Accepted {
				want.Cluster = ClusterID{} // it hasn't proved that it belongs to ours
			}
			if theirs != want {
				t.Errorf("the other side said %+v, want %+v", theirs, want)
			}
			if tt.want == Accepted {
				if err != nil {
					t.Fatal(err)
				}
				conn.Write([]byte("ping"))
				if got := readN(t, conn, 4); got != "ping" {
					t.Fatalf("read %q", got)
				}
				return
			}
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Code != tt.want {
				t.Fatalf("got %v, want code %d", err, tt.want)
			}
			if strings.Contains(log.String(), hex.EncodeToString(x[:])) {
				t.Errorf("the log has the id of an ensemble: %s", log.String())
			}
			if tt.want == WrongCluster && (!strings.Contains(log.String(), x.String()) || !strings.Contains(log.String(), y.String())) {
				t.Errorf("the log does not name both ensembles: %s", log.String())
			}
		})
	}
}

func TestHubRefusesStrangers(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	h := newHub(t, m, Identity{ServerID: "1", Cluster: ClusterID{1}}, io.Discard)
	h.Handle(Raft, func(conn net.Conn, _ Identity) { t.Error("accepted"); conn.Close() })
	good := hello{version: version, kind: Raft, to: "1", from: Identity{ServerID: "2", Cluster: ClusterID{1}}}
	wire := good.append(nil)
	mutate := func(i int, v byte) []byte { b := bytes.Clone(wire); b[i] = v; return b }
	for name, in := range map[string][]byte{
		"a client's handshake": []byte("\x00\x00\x00\x2c\x00\x00\x00\x00\x00\x00\x00\x00"),
		"HTTP":                 []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"unknown kind":         mutate(10, 99),
		"kind 0":               mutate(10, 0),
		"id too long":          mutate(12, 200),
		"id with a newline":    mutate(13, '\n'),
		"bytes after the id":   mutate(20, 'x'),
	} {
		conn, err := m.Host("x").Dial(t.Context(), "s1:1")
		if err != nil {
			t.Fatal(err)
		}
		conn.Write(in)
		_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
		if n, err := conn.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%s: read %d bytes, %v; want the connection closed", name, n, err)
		}
		conn.Close()
	}
}

func FuzzHello(f *testing.F) {
	h := hello{version: version, kind: Probe, to: "12", from: Identity{ServerID: "3.1", Cluster: ClusterID{7}, Nonce: 9}}
	f.Add(h.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h hello
		if h.decode(b) != nil {
			return
		}
		if again := h.append(nil); !bytes.Equal(again, b) {
			t.Fatalf("%x became %x", b, again)
		}
	})
}

// TestManyHandshakes: completed handshakes should not count as in progress, and their
// connections should stay open.
func TestManyHandshakes(t *testing.T) {
	t.Parallel()
	var log logBuffer
	m := NewMemory()
	x := ClusterID{1}
	a, b := newHub(t, m, Identity{ServerID: "1", Cluster: x}, &log), newHub(t, m, Identity{ServerID: "2", Cluster: x}, &log)
	b.Handle(Raft, echo)
	var open []net.Conn
	for i := range maxHandshakes + 1 {
		a.SetIdentity(Identity{ServerID: fmt.Sprint(i), Cluster: x}) // a member may have few streams
		conn, _, err := a.Dial(t.Context(), Raft, "s2:1", "2")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	for i, conn := range open {
		conn.Write([]byte("ping"))
		if got := readN(t, conn, 4); got != "ping" {
			t.Fatalf("connection %d: read %q", i, got)
		}
	}
}

// unanswered is a network that never answers connection attempts.
type unanswered struct{ Network }

func (unanswered) Dial(ctx context.Context, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestAttemptToConnectIsShort: after a silent network failure a new attempt should succeed
// immediately, while an old one still waits for the kernel to resend its SYN.
func TestAttemptToConnectIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := Listen(unanswered{NewMemory().Host("s1")}, "s1:1", Identity{ServerID: "1"}, Security{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		began := time.Now()
		if _, _, err := h.Dial(t.Context(), Raft, "s2:1", "2"); err == nil || time.Since(began) > ConnectTimeout {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// TestStrangersDoNotFillTheLog: if a caller names another server each time, we should log a
// bounded number of lines, and count the rest.
func TestStrangersDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log logBuffer
		h := newHub(t, NewMemory(), Identity{ServerID: "1", Cluster: ClusterID{1}}, &log)
		for i := range 1000 {
			h.complain(&RefusedError{Incoming: true, Code: WrongTarget, Addr: "10.0.0.1:5", To: fmt.Sprint(i)})
		}
		if n := strings.Count(log.String(), "refused to talk"); n != maxRefusalLines {
			t.Errorf("%d lines", n)
		}
		time.Sleep(refusalPause)
		h.complain(&RefusedError{Incoming: true, Code: WrongTarget, Addr: "10.0.0.1:5", To: "1"})
		if want := fmt.Sprint("count=", 1000-maxRefusalLines); !strings.Contains(log.String(), want) {
			t.Errorf("no %s", want)
		}
		h.Close()
	})
}

// TestBeatsAreAnnounced: an acceptor learns whether the caller understands working bytes.
// Servers of earlier releases don't announce it.
func TestBeatsAreAnnounced(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	hub := newHub(t, m, Identity{ServerID: "2", Cluster: ClusterID{1}}, io.Discard)
	accepted := make(chan bool, 1)
	hub.Handle(Raft, func(conn net.Conn, from Identity) {
		accepted <- from.Beats
		conn.Close()
	})
	for code, want := range map[Code]bool{Accepted: false, beats: true} {
		conn, err := m.Host("s1").Dial(t.Context(), "s2:1")
		if err != nil {
			t.Fatal(err)
		}
		if err := member(conn, Raft, code, "1", "2"); err != nil {
			t.Fatal(err)
		}
		if got := <-accepted; got != want {
			t.Errorf("code %d: beats %t", code, got)
		}
		conn.Close()
	}
}
