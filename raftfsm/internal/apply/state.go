package apply

import (
	"bufio"
	"fmt"
	"io"

	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// State is the state that the log determines. Snapshots contain it. Readers hold the
// tree's lock. The tree has the zxid and thus the epoch.
type State struct {
	Tree        *tree.Tree
	Sessions    *session.Table
	Incarnation uint64            // of the newest LeaderStart
	Seq         uint64            // of the newest batch of that incarnation
	Level       uint32            // behaviour level of the log: every server of the ensemble knows it
	Cluster     command.ClusterID // zero until the first LeaderStart
	Config      []byte            // the membership (membership.List.State), nil in a standalone server
	Index       uint64            // newest entry applied
	Rows        uint64            // xor of rowDigest over the sessions
	Mirror      mirrored.State    // mirror of another ensemble
}

// digest returns the digest that batches carry.
func (s *State) digest() uint64 { return s.Tree.FullDigest() ^ s.Rows }

// SumRows computes rows from the sessions.
func (s *State) SumRows() {
	s.Rows = 0
	for row := range s.Sessions.All {
		s.Rows ^= rowDigest(row)
	}
}

// Plant replaces tree and sessions by those from another source.
func (s *State) Plant(t *tree.Tree, sessions *session.Table, level uint32) {
	s.Tree, s.Sessions, s.Level = t, sessions, level
	s.SumRows()
}

// MaxEpoch keeps zxids positive.
const MaxEpoch = 1<<31 - 1

// BeginAnew prepares the state for a new history, in an epoch: it removes sessions,
// leadership and state transfer. tx has the time and the policy of the change. The caller
// holds the tree's lock.
func (m *Machine) BeginAnew(epoch int64, tx tree.Txn) {
	m.Tree.Advance(epoch << 32)
	m.tx = tx
	for row := range m.Sessions.All {
		m.endSession(&command.Command{Kind: command.KindExpire, Session: row.ID})
	}
	m.Incarnation, m.Seq = 0, 0
	m.drop(errRestoreLeader)
}

// dump writes the state as text. Equal states give the same text.
func (s *State) dump(w io.Writer, why error) error {
	s.Tree.RLock()
	defer s.Tree.RUnlock()
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%v\nentry=%d incarnation=%#x seq=%d level=%d cluster=%x sessions=%d\n", why, s.Index, s.Incarnation, s.Seq, s.Level, s.Cluster, s.Sessions.Len())
	fmt.Fprintf(b, "config=%q\n", s.Config)
	for row := range s.Sessions.All {
		fmt.Fprintf(b, "session=%#x gen=%d timeout=%d server=%d digest=%#x\n", uint64(row.ID), row.Gen, row.Timeout, row.Server, rowDigest(row))
	}
	if err := s.Tree.Dump(b); err != nil {
		return err
	}
	return b.Flush()
}
