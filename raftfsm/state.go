package raftfsm

import (
	"bufio"
	"fmt"
	"io"

	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// state is what the log determines, and what a snapshot holds. Readers hold the tree's lock.
// The tree holds the zxid and thus the epoch.
type state struct {
	tree        *tree.Tree
	sessions    *session.Table
	incarnation uint64            // of the newest LeaderStart
	seq         uint64            // of the newest batch of that incarnation
	level       uint32            // behaviour level of the log: every server of the ensemble knows it
	cluster     command.ClusterID // zero until the first LeaderStart
	config      []byte            // the membership (membership.List.State), nil in a standalone server
	index       uint64            // newest entry applied
	rows        uint64            // xor of rowDigest over the sessions
}

// digest returns the digest that batches carry.
func (s *state) digest() uint64 { return s.tree.FullDigest() ^ s.rows }

// sumRows computes rows from the sessions.
func (s *state) sumRows() {
	s.rows = 0
	for row := range s.sessions.All {
		s.rows ^= rowDigest(row)
	}
}

// plant replaces tree and sessions by those of a state from elsewhere.
func (s *state) plant(t *tree.Tree, sessions *session.Table, level uint32) {
	s.tree, s.sessions, s.level = t, sessions, level
	s.sumRows()
}

// maxEpoch keeps zxids positive.
const maxEpoch = 1<<31 - 1

// beginAnew makes the state one in which a new history can begin, in an epoch: without
// sessions, leadership and state transfer. tx has the time and the policy of the change. The
// tree is locked.
func (m *machine) beginAnew(epoch int64, tx tree.Txn) {
	m.tree.Advance(epoch << 32)
	m.tx = tx
	for row := range m.sessions.All {
		m.endSession(&command.Command{Kind: command.KindExpire, Session: row.ID})
	}
	m.incarnation, m.seq = 0, 0
	m.drop(errRestoreLeader)
}

// dump writes the state as text. Equal states give the same text.
func (s *state) dump(w io.Writer, why error) error {
	s.tree.RLock()
	defer s.tree.RUnlock()
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%v\nentry=%d incarnation=%#x seq=%d level=%d cluster=%x sessions=%d\n", why, s.index, s.incarnation, s.seq, s.level, s.cluster, s.sessions.Len())
	fmt.Fprintf(b, "config=%q\n", s.config)
	for row := range s.sessions.All {
		fmt.Fprintf(b, "session=%#x gen=%d timeout=%d server=%d digest=%#x\n", uint64(row.ID), row.Gen, row.Timeout, row.Server, rowDigest(row))
	}
	if err := s.tree.Dump(b); err != nil {
		return err
	}
	return b.Flush()
}
