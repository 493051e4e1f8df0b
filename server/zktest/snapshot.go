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
	copy  *tree.Copy
	image []image // of the znodes, for a member of a cluster
}

// Snapshot keeps what the tree holds, but no ephemeral znodes.
func (s *Server) Snapshot() *Snapshot {
	s.t.Helper()
	var b bytes.Buffer
	t := s.Server().Node().Tree()
	t.Lock()
	snap := t.Snapshot()
	t.Unlock()
	defer snap.Release()
	lasting := tree.New()
	_, err := snap.WriteTo(&b)
	if err == nil {
		err = lasting.Restore(&b)
	}
	if err != nil {
		s.fatalf("Snapshot: %v", err)
	}
	for id := range lasting.EphemeralSessions() {
		lasting.Apply(&tree.Txn{Zxid: lasting.LastZxid(), Time: s.clock.now().UnixMilli(), Session: id}, proto.OpCloseSession, nil)
	}
	to := &Snapshot{s: s, copy: lasting.Copy()}
	if s.cluster != nil {
		to.image = imagesOf(lasting)
	}
	return to
}

// Reset has the tree hold again what it held at a Snapshot. All sessions end and
// their connections are closed, so there are no watches; faults that have not
// happened are called off, and requests are counted anew. zxids go on rising.
//
// On a server that stands alone everything is as it was: data, versions, ACLs,
// times, the numbers of sequential znodes. On a member of a cluster Reset
// consists of transactions, as all that replicas are to agree on: znodes, data,
// ACLs and versions of the data are as they were, but times are new, and a
// sequence may go on elsewhere.
func (s *Server) Reset(to *Snapshot) {
	s.t.Helper()
	if to.s.cluster != s.cluster || s.cluster == nil && to.s != s {
		s.fatalf("Reset: to a snapshot of another server")
	}
	s.gate.log("back to a snapshot")
	s.endSessions()
	if s.cluster != nil {
		s.transact(to.image)
	} else if err := s.recall(to.copy); err != nil {
		s.fatalf("Reset: %v", err)
	}
	for _, member := range s.ensemble() {
		g := member.gate
		g.mu.Lock()
		g.faults = nil
		clear(g.counts)
		g.mu.Unlock()
	}
}

// ensemble is the servers that hold the same: s alone, outside of a cluster.
func (s *Server) ensemble() []*Server {
	if s.cluster == nil {
		return []*Server{s}
	}
	return s.cluster.servers
}

// endSessions ends all sessions that there are, at once.
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
	if s.cluster != nil {
		for _, row := range rows {
			s.cluster.end(row.ID, row.Gen)
		}
		return
	}
	failed := make(chan error, len(rows))
	for _, row := range rows {
		go func() {
			_, err := endSession(srv, row.ID, row.Gen)
			failed <- err
		}()
	}
	for range rows {
		if err := <-failed; err != nil {
			s.fatalf("Reset: %v", err)
		}
	}
}

// recall replaces the tree's content. The log does not know of it. For a server
// in memory that is of no consequence: nobody ever reads that log. One on disk
// takes a snapshot of the new content, which what it reads back begins with. The
// entry in between takes the digest of the new content into the log.
func (s *Server) recall(c *tree.Copy) error {
	srv := s.Server()
	t := srv.Node().Tree()
	t.Lock()
	t.Recall(c)
	t.Unlock()
	if s.dir == "" {
		return nil
	}
	if err := barrier(srv); err != nil {
		return err
	}
	return srv.Node().Snapshot()
}
