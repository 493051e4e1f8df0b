package zktest

import (
	"bytes"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// Snapshot is what a server's tree held at some time, to go back to.
type Snapshot struct {
	s     *Server
	image []byte
}

// Snapshot keeps what the tree holds: data, versions, ACLs, times and the
// numbers of sequential znodes, but no ephemeral znodes. It is for a server that
// stands alone and has no disk.
func (s *Server) Snapshot() *Snapshot {
	s.t.Helper()
	if s.cluster != nil || s.dir != "" {
		s.fatalf("Snapshot: only of a server that stands alone and has no disk")
	}
	var b bytes.Buffer
	t := s.Server().Node().Tree()
	t.Lock()
	image := t.Snapshot()
	t.Unlock()
	defer image.Release()
	if _, err := image.WriteTo(&b); err != nil {
		s.fatalf("Snapshot: %v", err)
	}
	return &Snapshot{s: s, image: b.Bytes()}
}

// Reset has the tree hold again what it held at a Snapshot. All sessions end and
// their connections are closed, faults that have not happened are called off,
// and requests are counted anew. zxids go on rising.
func (s *Server) Reset(to *Snapshot) {
	s.t.Helper()
	if to.s != s {
		s.fatalf("Reset: to a snapshot of another server")
	}
	s.gate.log("back to a snapshot")
	s.endSessions()
	if err := s.restore(to.image); err != nil {
		s.fatalf("Reset: %v", err)
	}
	s.gate.mu.Lock()
	s.gate.faults = nil
	clear(s.gate.counts)
	s.gate.mu.Unlock()
}

// endSessions ends all sessions that there are.
func (s *Server) endSessions() {
	s.t.Helper()
	srv, err := s.writer()
	if err != nil {
		s.fatalf("Reset: %v", err)
	}
	var rows []session.Session
	s.read(func(*tree.Tree) {
		for row := range srv.Node().Sessions().All {
			rows = append(rows, row)
		}
	})
	for _, row := range rows {
		if _, err := endSession(srv, row.ID, row.Gen); err != nil {
			s.fatalf("Reset: %v", err)
		}
	}
}

// restore replaces the tree's content. The log does not know of it, which is of
// no consequence to a server alone in memory: nobody ever reads that log.
func (s *Server) restore(image []byte) error {
	t := s.Server().Node().Tree()
	t.Lock()
	defer t.Unlock()
	now := t.LastZxid()
	if err := t.Restore(bytes.NewReader(image)); err != nil {
		return err
	}
	for id := range t.EphemeralSessions() {
		t.Apply(&tree.Txn{Zxid: now, Time: s.clock.now().UnixMilli(), Session: id}, proto.OpCloseSession, nil)
	}
	t.Advance(now)
	return nil
}
