package zktest

import (
	"bytes"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// Snapshot is the contents of a server's tree at some time, for Reset.
type Snapshot struct {
	s     *Server
	copy  *tree.Copy
	image []image // of the znodes; for a member of a cluster
}

// Snapshot saves the contents of the tree, without ephemeral znodes.
func (s *Server) Snapshot() *Snapshot {
	s.t.Helper()
	s.inProcess(needsServer)
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

// Reset restores the tree to a Snapshot. It ends all sessions and closes their
// connections, so no watches remain; it cancels faults that haven't struck, and
// resets the request counts. zxids keep rising.
//
// On a standalone server it restores everything: data, versions, ACLs, times, and the
// counters of sequential znodes. On a member of a cluster Reset runs as transactions,
// because all replicas must agree: it restores znodes, data, ACLs and data versions,
// but times are new, and the counters of sequential znodes may differ.
func (s *Server) Reset(to *Snapshot) {
	s.t.Helper()
	s.inProcess(needsServer)
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

// ensemble returns all servers with the same contents: only s if it's standalone.
func (s *Server) ensemble() []*Server {
	if s.cluster == nil {
		return []*Server{s}
	}
	return s.cluster.servers
}

// endSessions ends all existing sessions concurrently.
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

// recall replaces the tree's contents without a log entry. For an in-memory server this is
// safe, because it never reads its log. On disk we write a snapshot of the new contents, and
// recovery starts from that snapshot. The barrier's log entry before the snapshot puts the
// digest of the new contents into the log.
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
