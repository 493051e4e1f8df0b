package raftfsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/zkgo/zkgo/tree"
)

// How another state takes the place of the one that is there while the servers
// run. It goes through the log, as everything does: Raft's own way to restore
// replaces the state of the leader before a quorum has it.
//
//	begin  = id:8
//	chunk  = id:8 number:4 piece       the pieces are a tree.Snapshot as it is written
//	commit = id:8 chunks:4 bytes:8 sum:4 sessions:8
//	abort  = id:8
//
// Every server builds the new tree beside its own as the pieces are applied, and
// throws it away at the first thing that is wrong. With the commit, if all is
// there, it takes the place of the old one:
//
//   - The epoch goes up by one from the higher of the two, so that no zxid comes
//     twice and no client is ahead of the servers.
//   - All sessions end, and all connections are closed. A client knows a state that
//     is gone; that its session has expired makes it start afresh. The new tree has
//     no ephemeral znodes: whoever proposes it has ended its sessions. Ids of new
//     sessions begin above those of both.
//   - The znode of the membership stays.
//
// What arrives is dropped, and nothing has changed, when another leadership or
// another restore begins, with an abort, and when arrivalLimit of log time goes by
// without a piece. All of that is in the log, so all servers do the same. Nothing of
// it is in snapshots: while a state arrives none is taken, so that the pieces are
// always behind the newest one.

// restoreLevel is the behaviour level from which on there are restores.
const restoreLevel = 2

// arrivalLimit is how long what has arrived is kept without more of it.
const arrivalLimit = time.Minute

// Why a restore has come to nothing.
var (
	errRestoreLeader  = errors.New("another leadership has begun: nothing was changed, try again")
	errRestoreLate    = fmt.Errorf("nothing more of it came for %v: nothing was changed", arrivalLimit)
	errRestoreOther   = errors.New("another restore has begun: this one has changed nothing")
	errRestoreAborted = errors.New("it was given up: nothing was changed")
	errRestoreSkipped = fmt.Errorf("%w: this server has got a snapshot meanwhile", ErrRestoreUnknown)
)

// errArriving is why no snapshot is taken.
var errArriving = errors.New("a restore is under way")

// arrival is a state on its way.
type arrival struct {
	id      uint64
	next    uint32 // number of the next chunk
	bytes   int64
	sum     uint32
	newest  int64 // time of the entry that brought the newest piece
	loading *tree.Loading
}

// restored says how a restore has ended.
type restored struct {
	zxid int64
	err  error
}

// restoreCommit is the body of a KindRestoreCommit.
type restoreCommit struct {
	chunks   uint32
	bytes    int64
	sum      uint32
	sessions uint64 // what the counter of session ids is at least
}

func (r *restoreCommit) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, r.chunks)
	b = binary.BigEndian.AppendUint64(b, uint64(r.bytes))
	b = binary.BigEndian.AppendUint32(b, r.sum)
	return binary.BigEndian.AppendUint64(b, r.sessions)
}

func (r *restoreCommit) decode(b []byte) error {
	if len(b) != 4+8+4+8 {
		return fmt.Errorf("body of %d bytes", len(b))
	}
	r.chunks = binary.BigEndian.Uint32(b)
	r.bytes = int64(binary.BigEndian.Uint64(b[4:]))
	r.sum = binary.BigEndian.Uint32(b[12:])
	r.sessions = binary.BigEndian.Uint64(b[16:])
	return nil
}

// pieceSum goes on with the checksum of all pieces.
func pieceSum(sum uint32, piece []byte) uint32 {
	return crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), piece) // the table is made once by the library
}

// applyRestore applies a command of a restore. The tree is locked.
func (m *machine) applyRestore(c *Command) error {
	if len(c.Body) < 8 {
		return errors.New("body without an id")
	}
	id, b := binary.BigEndian.Uint64(c.Body), c.Body[8:]
	a := m.arriving
	if m.level < restoreLevel {
		m.log.Warn("a restore before every server knows what it is has no effect")
	} else if c.Kind == KindRestoreBegin {
		m.drop(errRestoreOther)
		m.arriving = &arrival{id: id, newest: m.tx.Time, loading: tree.NewLoading()}
	} else if a != nil && a.id == id { // else it was dropped
		var err error
		switch c.Kind {
		case KindRestoreChunk:
			err = m.applyChunk(a, b)
		case KindRestoreCommit:
			err = m.applyRestoreCommit(a, b)
		case KindRestoreAbort:
			err = errRestoreAborted
		}
		if err != nil {
			m.drop(err)
		}
	}
	if done, ok := c.Waiter.(restoreWaiter); ok {
		done()
	}
	return nil
}

// restoreWaiter is the Waiter of a command of a restore. It must not block.
type restoreWaiter func()

// dropLate drops what has arrived if nothing more of it has come for long.
func (m *machine) dropLate(now int64) {
	if a := m.arriving; a != nil && now-a.newest > arrivalLimit.Milliseconds() {
		m.tree.Lock()
		defer m.tree.Unlock()
		m.drop(errRestoreLate)
	}
}

// drop forgets what has arrived. The tree is locked.
func (m *machine) drop(why error) {
	if a := m.arriving; a != nil {
		m.arriving = nil
		m.log.Info("a restore has come to nothing", "reason", why)
		m.settled(a.id, restored{err: why})
	}
}

// applyChunk takes a piece.
func (m *machine) applyChunk(a *arrival, b []byte) error {
	if len(b) < 4 || binary.BigEndian.Uint32(b) != a.next {
		return fmt.Errorf("piece %d of it is missing: nothing was changed", a.next)
	}
	piece := b[4:]
	a.next++
	a.bytes += int64(len(piece))
	a.sum = pieceSum(a.sum, piece)
	a.newest = m.tx.Time
	if _, err := a.loading.Write(piece); err != nil {
		return fmt.Errorf("what came of it is damaged, nothing was changed: %w", err)
	}
	return nil
}

// applyRestoreCommit replaces the state, if the other one is whole.
func (m *machine) applyRestoreCommit(a *arrival, b []byte) error {
	var r restoreCommit
	if err := r.decode(b); err != nil {
		return err
	}
	if r.chunks != a.next || r.bytes != a.bytes || r.sum != a.sum {
		return fmt.Errorf("%d pieces with %d bytes and checksum %08x came of %d with %d and %08x: nothing was changed",
			a.next, a.bytes, a.sum, r.chunks, r.bytes, r.sum)
	}
	t, err := a.loading.Tree()
	if err != nil {
		return fmt.Errorf("what came of it is damaged, nothing was changed: %w", err)
	}
	if n := t.EphemeralCount(); n > 0 {
		return fmt.Errorf("it has %d ephemeral znodes, whose sessions cannot go on: nothing was changed", n)
	}
	epoch := max(m.tree.LastZxid()>>32, t.LastZxid()>>32) + 1
	if epoch > maxEpoch {
		return fmt.Errorf("the epoch would be %d, there is none above %d: nothing was changed", epoch, int64(maxEpoch))
	}
	m.log.Info("the state is replaced by a restored one", "zxid", fmt.Sprintf("0x%x", epoch<<32), "znodes", t.NodeCount())
	m.arriving = nil
	m.handler.Jumped()
	for row := range m.sessions.All {
		m.events = m.changed(event{kind: evEnded, session: row.ID})
	}
	m.sessions.Clear()
	m.sessions.Skip(r.sessions)
	m.rows = 0
	m.tree.Adopt(t)
	m.tree.Advance(epoch << 32)
	m.snapCounter.soon()
	m.settled(a.id, restored{zxid: epoch << 32})
	m.out = Applied{Kind: KindRestoreCommit, Zxid: epoch << 32} // a transaction of nobody's
	m.handler.Applied(&m.out)
	return nil
}
