package apply

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/tree"
)

// How a restore replaces the state while the servers run. The new state goes through
// the log like every other change. We don't use Raft's own restore because it replaces
// the leader's state before a quorum has the new one.
//
//	begin  = id:8
//	chunk  = id:8 number:4 piece       the pieces are a serialized tree.Snapshot
//	commit = id:8 chunks:4 bytes:8 sum:4 sessions:8
//	abort  = id:8
//	sessions = id:8 number:4 piece     the pieces are a serialized session.Table
//	begin of a mirror = commit         (mirror.go)
//
// As a server applies the pieces, it builds the new tree next to its own. It discards the
// new tree at the first error. If the new tree is complete, it replaces the old tree at
// the commit:
//
//   - The new epoch is one above the higher epoch of the two trees, so that no zxid is
//     used twice and no client is ahead of the servers.
//   - All sessions end, and all connections are closed. The clients know a state that
//     no longer exists; an expired session makes a client start over. The new tree
//     has no ephemeral znodes, because the proposer has ended its sessions. The ids
//     of new sessions start above the ids in both trees.
//   - The znode of the membership stays.
//
// The servers drop the new tree, and keep the old one, when another leadership or
// another restore starts, when the restore is aborted, and when stateTransferLimit
// of log time passes without a piece. All of these are in the log, so all servers do
// the same. A restore in progress is never part of a snapshot: there are no
// snapshots during a restore, so all pieces are in the log after the newest
// snapshot.

// RestoreLevel is the behaviour level that introduced restores.
const RestoreLevel = 2

// StateTransferLimit is the maximum time between two pieces of a restore, in log time.
const StateTransferLimit = time.Minute

// ErrRestoreUnknown reports that the state may have been replaced, or still be replaced
// later.
var ErrRestoreUnknown = errors.New("it is unknown whether the state was replaced")

// Reasons why a restore failed.
var (
	errRestoreLeader  = errors.New("another leadership has begun: nothing was changed, try again")
	errRestoreLate    = fmt.Errorf("no more data for %v: nothing was changed", StateTransferLimit)
	errRestoreOther   = errors.New("another restore has begun: this one changed nothing")
	errRestoreAborted = errors.New("it was given up: nothing was changed")
	errRestoreSkipped = fmt.Errorf("%w: this server has installed a snapshot since", ErrRestoreUnknown)
)

// errArriving is the reason why there is no snapshot.
var errArriving = errors.New("a restore is under way")

// stateTransfer is a state transfer in progress.
type stateTransfer struct {
	id      uint64
	Next    uint32 // number of the next chunk
	bytes   int64
	sum     uint32
	newest  int64 // time of the entry with the newest piece
	loading *tree.Loading
	// sessions is the received table, if the state keeps its sessions.
	sessions []byte
}

// Restored is the outcome of a restore.
type Restored struct {
	Zxid int64
	Err  error
}

// RestoreCommit is the body of a KindRestoreCommit.
type RestoreCommit struct {
	Chunks   uint32
	Bytes    int64
	Sum      uint32
	Sessions uint64 // lower bound for the counter of session ids
}

// Append appends the encoding of r:
//
//	chunks:4 bytes:8 sum:4 sessions:8
func (r *RestoreCommit) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, r.Chunks)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Bytes))
	b = binary.BigEndian.AppendUint32(b, r.Sum)
	return binary.BigEndian.AppendUint64(b, r.Sessions)
}

func (r *RestoreCommit) decode(b []byte) error {
	if len(b) != 4+8+4+8 {
		return fmt.Errorf("body of %d bytes", len(b))
	}
	r.Chunks = binary.BigEndian.Uint32(b)
	r.Bytes = int64(binary.BigEndian.Uint64(b[4:]))
	r.Sum = binary.BigEndian.Uint32(b[12:])
	r.Sessions = binary.BigEndian.Uint64(b[16:])
	return nil
}

// PieceSum adds a piece to the checksum of all pieces.
func PieceSum(sum uint32, piece []byte) uint32 {
	return crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), piece) // MakeTable builds the table only once
}

// applyRestore applies a command of a restore. The tree is locked.
func (m *Machine) applyRestore(c *command.Command) error {
	if len(c.Body) < 8 {
		return errors.New("body without an id")
	}
	id, b := binary.BigEndian.Uint64(c.Body), c.Body[8:]
	a := m.Arriving
	if m.Level < RestoreLevel {
		m.Log.Warn("a restore has no effect, because not every server supports restores")
	} else if c.Kind == command.KindRestoreBegin {
		m.drop(errRestoreOther)
		m.Arriving = &stateTransfer{id: id, newest: m.tx.Time, loading: tree.NewLoading()}
	} else if a != nil && a.id == id { // otherwise it was dropped
		var err error
		switch c.Kind {
		case command.KindRestoreChunk, command.KindRestoreSessions:
			err = m.applyChunk(a, c.Kind, b)
		case command.KindRestoreCommit:
			err = m.applyRestoreCommit(a, b)
		case command.KindMirrorBegin:
			err = m.Mirroring.begin(a, b)
		case command.KindRestoreAbort:
			err = errRestoreAborted
		}
		if err != nil {
			m.drop(err)
		}
	}
	if c.Waiter != nil {
		c.Waiter.Applied(&m.out)
	}
	return nil
}

// RestoreWaiter is the Waiter of a command of a restore.
type RestoreWaiter func()

// Applied implements Waiter.
func (done RestoreWaiter) Applied(*command.Applied) { done() }

// dropLate drops the restore if its last piece is older than stateTransferLimit.
func (m *Machine) dropLate(now int64) {
	if a := m.Arriving; a != nil && now-a.newest > StateTransferLimit.Milliseconds() {
		m.Tree.Lock()
		defer m.Tree.Unlock()
		m.drop(errRestoreLate)
	}
}

// drop abandons the restore in progress, if any. The tree is locked.
func (m *Machine) drop(why error) {
	if a := m.Arriving; a != nil {
		m.Arriving = nil
		m.Log.Info("a restore failed", "reason", why)
		m.Settled(a.id, Restored{Err: why})
	}
}

// applyChunk adds a piece to the new tree, or to the sessions.
func (m *Machine) applyChunk(a *stateTransfer, k command.Kind, b []byte) error {
	if len(b) < 4 || binary.BigEndian.Uint32(b) != a.Next {
		return fmt.Errorf("piece %d of it is missing: nothing was changed", a.Next)
	}
	piece := b[4:]
	a.Next++
	a.bytes += int64(len(piece))
	a.sum = PieceSum(a.sum, piece)
	a.newest = m.tx.Time
	if k == command.KindRestoreSessions {
		a.sessions = append(a.sessions, piece...)
		return nil
	}
	if _, err := a.loading.Write(piece); err != nil {
		return fmt.Errorf("the received state is damaged, nothing was changed: %w", err)
	}
	return nil
}

// applyRestoreCommit replaces the state if the new state is complete.
func (m *Machine) applyRestoreCommit(a *stateTransfer, b []byte) error {
	r, t, err := a.complete(b)
	if err != nil {
		return err
	}
	if m.Mirror.Rests() {
		return fmt.Errorf("the state belongs to a mirror (phase %v): nothing was changed", m.Mirror.Phase)
	}
	if n := t.EphemeralCount(); n > 0 {
		return fmt.Errorf("it has %d ephemeral znodes of sessions that cannot continue: nothing was changed", n)
	}
	epoch := max(m.Tree.LastZxid()>>32, t.LastZxid()>>32) + 1
	if epoch > MaxEpoch {
		return fmt.Errorf("the epoch would be %d, there is none above %d: nothing was changed", epoch, int64(MaxEpoch))
	}
	m.Log.Info("the state is replaced by a restored one", "zxid", fmt.Sprintf("0x%x", epoch<<32), "znodes", t.NodeCount())
	replace(m, t, true)
	m.Sessions.Skip(r.Sessions)
	m.Mirror = mirrored.State{}
	m.Tree.Advance(epoch << 32)
	settle(m, a, command.KindRestoreCommit)
	return nil
}

// complete returns the commit of a state transfer and the new tree, if everything has arrived.
func (a *stateTransfer) complete(commit []byte) (r RestoreCommit, t *tree.Tree, err error) {
	if err := r.decode(commit); err != nil {
		return r, nil, err
	}
	if r.Chunks != a.Next || r.Bytes != a.bytes || r.Sum != a.sum {
		return r, nil, fmt.Errorf("received %d pieces with %d bytes and checksum %08x, expected %d with %d and %08x: nothing was changed",
			a.Next, a.bytes, a.sum, r.Chunks, r.Bytes, r.Sum)
	}
	if t, err = a.loading.Tree(); err != nil {
		return r, nil, fmt.Errorf("the received state is damaged, nothing was changed: %w", err)
	}
	return r, t, nil
}

// replace ends all sessions and replaces the tree. The znode of the membership may stay.
func replace(m *Machine, t *tree.Tree, keepConfig bool) {
	m.Arriving = nil
	m.Mirroring.giveUp()
	m.Handler.Jumped()
	for row := range m.Sessions.All {
		m.events = m.changed(Event{Kind: Ended, Session: row.ID})
	}
	m.Sessions.Clear()
	m.Rows = 0
	m.Tree.Adopt(t, keepConfig)
}

// settle reports that a's state is now in force.
func settle(m *Machine, a *stateTransfer, k command.Kind) {
	zxid := m.Tree.LastZxid()
	m.rec.jump()
	m.SnapCounter.Soon()
	m.Settled(a.id, Restored{Zxid: zxid})
	m.out = command.Applied{Kind: k, Zxid: zxid} // belongs to no session
	m.Handler.Applied(&m.out)
}
