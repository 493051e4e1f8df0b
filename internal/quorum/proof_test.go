package quorum

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// overheard is a connection that records the received bytes.
type overheard struct {
	net.Conn
	in bytes.Buffer
}

func (c *overheard) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.Write(p[:n])
	return n, err
}

// TestStrangersLearnNoID: a server reveals the id of its ensemble to no caller, and a
// caller that knows only the name of the ensemble can't open a stream as a member.
func TestStrangersLearnNoID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testStrangersLearnNoID)
}

func testStrangersLearnNoID(t *testing.T) {
	id := ClusterID{0xde, 0xad, 0xbe, 0xef, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	var log logBuffer
	m := NewMemory()
	h := newHub(t, m, Identity{ServerID: "2", Cluster: id, Nonce: 77}, &log)
	accepted := make(chan Identity, 10)
	for kind := Raft; kind < kinds; kind++ {
		h.Handle(kind, func(conn net.Conn, from Identity) { accepted <- from; conn.Close() })
	}
	call := func(said hello, after ...byte) *overheard {
		raw, err := m.Host("x").Dial(t.Context(), "s2:1")
		if err != nil {
			t.Fatal(err)
		}
		conn := &overheard{Conn: raw}
		t.Cleanup(func() { conn.Close() })
		by := time.Now().Add(30 * time.Second)
		if err := writeHello(conn, &said, by); err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(after)
		_ = conn.SetReadDeadline(by)
		_, _ = io.Copy(io.Discard, conn)
		if bytes.Contains(conn.in.Bytes(), id[:4]) {
			t.Errorf("%+v learns the id of the ensemble", said)
		}
		return conn
	}
	for kind := Raft; kind < kinds; kind++ {
		for _, from := range []Identity{{ServerID: "1"}, {ServerID: "1", Ensemble: EnsembleName{1}}, {ServerID: "1", Ensemble: EnsembleName(id[:8])}, {ServerID: "1", Ensemble: id.Name()}} {
			call(hello{version: version, kind: kind, to: "2", from: from}, make([]byte, 200)...)
		}
		// A server doesn't accept its own messages from another server.
		call(hello{version: version, kind: kind, to: "2", from: Identity{ServerID: "2", Nonce: 77, Ensemble: id.Name()}}, make([]byte, 200)...)
	}
	_ = h.Close()
	close(accepted)
	for from := range accepted {
		if from.Cluster != (ClusterID{}) {
			t.Errorf("%+v is taken for a member", from)
		}
		if from.Ensemble == id.Name() {
			t.Errorf("%+v is let in without a proof", from)
		}
	}
	if !strings.Contains(log.String(), "does not prove") {
		t.Errorf("the log does not say so: %s", log.String())
	}
}

// TestProofsAreForOneConnection: a member's proof should be worthless on another
// connection, for another kind of stream, or in the other direction.
func TestProofsAreForOneConnection(t *testing.T) {
	t.Parallel()
	id := ClusterID{1}
	said := hello{version: version, kind: Raft, to: "2", from: Identity{ServerID: "1", Cluster: id}.named(), challenge: newChallenge()}
	answer := hello{version: version, kind: Raft, to: "1", from: Identity{ServerID: "2", Cluster: id}.named(), challenge: newChallenge()}
	answer.proof = id.answerProof(&said, &answer)
	want := id.callerProof(&said, &answer)
	if want == answer.proof {
		t.Error("both sides prove with the same code")
	}
	for name, change := range map[string]func(s, a *hello){
		"its challenge":       func(s, _ *hello) { s.challenge = newChallenge() },
		"the other's":         func(_, a *hello) { a.challenge = newChallenge() },
		"the kind":            func(s, _ *hello) { s.kind = Forward },
		"who says so":         func(s, _ *hello) { s.from.ServerID = "3" },
		"who is meant":        func(s, _ *hello) { s.to = "3" },
		"who answers":         func(_, a *hello) { a.from.ServerID = "3" },
		"what it knows":       func(_, a *hello) { a.code = NotReady },
		"its configuration":   func(s, _ *hello) { s.from.List = Hash{1} },
		"when it was started": func(s, _ *hello) { s.from.Nonce = 1 },
	} {
		s, a := said, answer
		change(&s, &a)
		if id.callerProof(&s, &a) == want && id.answerProof(&s, &a) == answer.proof {
			t.Errorf("%s is not covered", name)
		}
	}
	if (ClusterID{2}).callerProof(&said, &answer) == want {
		t.Error("another ensemble proves the same")
	}
}

// TestImpostor: a dialler should refuse a server that names its ensemble but can't prove
// that it belongs to it, even for a probe.
func TestImpostor(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	a := newHub(t, m, Identity{ServerID: "1", Cluster: ClusterID{1}}, io.Discard)
	ln, err := m.Host("s2").Listen("s2:1")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			by := time.Now().Add(30 * time.Second)
			if in, err := readHello(conn, by); err == nil {
				_ = writeHello(conn, &hello{version: version, kind: in.kind, from: Identity{ServerID: "2", Ensemble: ClusterID{1}.Name()}}, by)
			}
			_, _ = io.Copy(io.Discard, conn)
			conn.Close()
		}
	}()
	for _, kind := range []Kind{Raft, Probe} {
		_, _, err := a.Dial(t.Context(), kind, "s2:1", "2")
		if refused := (*RefusedError)(nil); !errors.As(err, &refused) || refused.Code != Impostor {
			t.Errorf("%v: %v", kind, err)
		}
	}
}
