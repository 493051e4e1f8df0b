package apply

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/snapio"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// How a server installs another server's state. A follower needs this if the leader has
// removed the entries that the follower lacks. internal/quorum moves the bytes and passes
// them to Raft, internal/raftlog manages the files, and this file does the rest. The
// steps, their dangers, and why the order is safe:
//
//  1. Send. The leader sends its newest snapshot, again and again until the follower
//     answers (OpenNewest; internal/quorum/transport/sendsnapshot.go). The newest may
//     contain more than Raft asked for, because the log may no longer reach back to an
//     older one. That is safe: a snapshot contains committed entries only, so a newer one
//     continues the same history. The leader's Raft learns of a success only when the
//     follower has finished step 5.
//  2. Check. CheckSnapshot reads the snapshot as it arrives and rejects it if step 5 would
//     fail: because it is another ensemble's, has a membership that this server can't read,
//     or is damaged. The reader that Raft gets reports the end only after that, so Raft
//     never stores a whole snapshot that wasn't checked. Raft adopts the sender's term
//     before it reads, so the beginning is checked even before Raft sees the request. The
//     check must come first: step 5 discards the current state and can't go back.
//  3. Refuse an old snapshot. A snapshot may arrive late. Raft would install it, set this
//     server back, and discard its log, with entries that the server has acknowledged. So
//     the transport passes a snapshot to Raft only if it ends after the newest entry
//     applied, and otherwise answers as if it were installed
//     (internal/quorum/transport/relay.go). It passes one request at a time, so no entry is
//     applied between this comparison and step 5. No acknowledged entry lies beyond a
//     snapshot that passes: Raft ignores the snapshot of an older term, and within a term
//     the leader sends entries beyond its newest snapshot only after the follower has
//     confirmed it. Restore compares again, because a mistake here would lose writes.
//  4. Store. Raft writes and syncs the snapshot before it calls Restore. A crash before the
//     rename leaves the old state and log, which are complete. After a later crash, the next
//     start loads the snapshot (LoadNewest) and continues with step 7.
//  5. Replace the state (Restore). The server gives up its clients' commands, closes all
//     clients, drops a state transfer, and loads the snapshot, all under the tree's write
//     lock. The transactions that the snapshot skips fire no watches and answer no
//     requests: a client that stayed connected would miss, e.g., that its lock is gone, and
//     read later states without the event. So Handler.Jumped closes every client before the
//     first znode changes. A client that reconnects sets its watches again, with the zxid
//     that it has seen, and gets the events that it missed. A reader holds the lock, so it
//     sees the old state or the new one. To save memory, there is no second tree. So a
//     failure leaves half a state, and stops the server; the next start loads the snapshot
//     from disk.
//  6. Freeze. Raft still assumes the old end of its log, and can refuse the leader's
//     entries forever, so the ensemble replaces the Raft instance (recycle). The old
//     instance may pass on more entries until then, and the new instance passes on all
//     entries after the snapshot again. Applied twice, they would corrupt the state. So the
//     machine ignores entries from the end of Restore, if Freeze has announced it, until
//     the old instance is shut down.
//  7. Align. Before a Raft instance starts, Align compares the newest snapshot with the machine
//     and the log. If the old instance ended between steps 4 and 5, Align restores the
//     snapshot: the next instance assumes that it is applied, and its entries would be missing
//     permanently. If the old instance ended before it truncated the log, the log may end before
//     the snapshot, and nothing could be appended to it. Align removes it: the snapshot has
//     all of its entries. Then Align ends the freeze, because no goroutine of the old instance
//     is left.
//  8. Serve. The server accepts clients again when it has caught up with the leader
//     (following.caughtUp).
//
// So after each step, and after a crash, the server's state is the result of a prefix of
// the committed entries, this prefix never becomes shorter, and the newest snapshot and
// the log after it have every entry that the server has acknowledged.

// OpenNewest opens the newest snapshot, to send it to a follower.
func OpenNewest(snaps raft.SnapshotStore) (*raft.SnapshotMeta, io.ReadCloser, error) {
	list, err := snaps.List()
	if err != nil {
		return nil, nil, err
	}
	if len(list) == 0 {
		return nil, nil, errors.New("there is no snapshot")
	}
	return snaps.Open(list[0].ID)
}

// CheckSnapshot reads a snapshot from another server and returns an error if a server of
// a cluster can't restore it. The zero cluster means that the server has none yet.
func CheckSnapshot(own command.ClusterID, q *raft.InstallSnapshotRequest, r io.Reader) error {
	c := snapio.NewReader(r)
	h, err := readSnapshotHeader(c)
	if err != nil {
		return err
	}
	switch {
	case own != (command.ClusterID{}) && h.cluster != own:
		return errors.New("it belongs to another ensemble")
	case h.index > q.LastLogIndex:
		return fmt.Errorf("it holds the state after entry %d, and is announced as ending at entry %d", h.index, q.LastLogIndex)
	}
	if h.config != nil {
		if _, err := membership.ParseState(h.config); err != nil {
			return fmt.Errorf("membership: %w", err)
		}
	}
	s := State{Sessions: session.NewTable()}
	if err := h.decodeSessions(s.Sessions); err != nil {
		return err
	}
	s.SumRows()
	digest, err := tree.Scan(c)
	if err != nil {
		return err
	}
	if err := c.End(); err != nil {
		return err
	}
	if digest^s.Rows != h.digest {
		return fmt.Errorf("the state has digest %#x, the snapshot says %#x", digest^s.Rows, h.digest)
	}
	return nil
}

// Freeze makes the next Restore freeze the machine. It is called before Raft gets a snapshot
// from a leader.
func (m *Machine) Freeze() { m.freezeNext.Store(true) }

// Restore replaces the state of a running server.
func (m *Machine) Restore(r io.ReadCloser) error {
	defer r.Close()
	if m.stopped {
		return errors.New("the state machine has stopped")
	}
	m.Tree.Lock()
	defer m.Tree.Unlock()
	m.Local.Lose()
	m.Mirroring.giveUp()
	m.Handler.Jumped()
	m.drop(errRestoreSkipped)
	before := m.Index
	err := m.Load(r)
	if err == nil && m.Index <= before {
		err = fmt.Errorf("it ends at index %d, not after entry %d, which is applied already", m.Index, before)
	}
	if err != nil {
		err = fmt.Errorf("restoring a snapshot: %w", err)
		m.stop(err)
	}
	m.frozen = m.freezeNext.Swap(false)
	m.Applied(m.Index)
	return err
}

// LoadNewest loads the newest snapshot when a server starts, and returns its description, or
// nil if there is none that can be opened. Raft would do that, too, but if that fails, Raft
// falls back to an older snapshot and continues.
func (m *Machine) LoadNewest(snaps raft.SnapshotStore) (*raft.SnapshotMeta, error) {
	list, err := snaps.List()
	if err != nil || len(list) == 0 {
		return nil, err
	}
	newest := list[0]
	_, r, err := snaps.Open(newest.ID)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	m.Tree.Lock()
	defer m.Tree.Unlock()
	if err := m.Load(r); err != nil {
		return newest, err
	}
	if m.Index > newest.Index {
		return newest, fmt.Errorf("holds the state of entry %d", m.Index)
	}
	m.installed = newest.Index
	return newest, nil
}

// Align brings machine and log in line with the newest snapshot, before a Raft instance
// starts.
func (m *Machine) Align(snaps raft.SnapshotStore, logs raft.LogStore) error {
	list, err := snaps.List()
	if err != nil || len(list) == 0 {
		return err
	}
	newest := list[0]
	if newest.Index > max(m.Index, m.installed) {
		m.Log.Info("using a snapshot that was not installed completely", "snapshot", newest.ID, "applied", m.Index)
		_, r, err := snaps.Open(newest.ID)
		if err != nil {
			return err
		}
		if err := m.Restore(r); err != nil {
			return err
		}
	}
	m.installed = newest.Index
	m.frozen = false
	m.freezeNext.Store(false)
	first, err := logs.FirstIndex()
	if err != nil {
		return err
	}
	last, err := logs.LastIndex()
	if err != nil || last == 0 || last >= newest.Index {
		return err
	}
	m.Log.Info("removing a log that ends before the newest snapshot", "first", first, "last", last, "snapshot", newest.ID)
	return logs.DeleteRange(first, last)
}

// Load replaces the state with the snapshot in r. The caller holds the tree's lock.
func (m *Machine) Load(r io.Reader) error {
	c := snapio.NewReader(r)
	h, err := readSnapshotHeader(c)
	if err == nil {
		err = h.enter(m)
	}
	if err != nil {
		return err
	}
	if err := m.Tree.Restore(c); err != nil {
		return fmt.Errorf("tree: %w", err)
	}
	if err := c.End(); err != nil {
		return err
	}
	m.rec.jump()
	m.SumRows()
	if got := m.digest(); got != h.digest {
		return fmt.Errorf("the state has digest %#x, the snapshot says %#x", got, h.digest)
	}
	m.Claims.begin(command.Check{Index: m.Index, Digest: h.digest})
	m.SnapCounter.reset()
	if m.Incarnation != 0 {
		// The snapshot doesn't name the leader of this incarnation, and the entry that
		// names it may be before the snapshot.
		m.Post([]Event{{Kind: Started, Server: membership.NoServer, Incarnation: m.Incarnation}})
	}
	return nil
}

// snapshotHeader is the part of a snapshot before the tree.
type snapshotHeader struct {
	incarnation uint64
	seq         uint64
	level       uint32
	cluster     command.ClusterID
	index       uint64
	digest      uint64
	config      []byte
	table       []byte // of the sessions, encoded
	mirror      mirrored.State
}

// readSnapshotHeader reads the part before the tree.
func readSnapshotHeader(r io.Reader) (*snapshotHeader, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxSnapshotHeader {
		return nil, fmt.Errorf("header of %d bytes", n)
	}
	head, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	const fixed = len(snapshotMagic) + 4 + 8 + 8 + 4 + command.ClusterIDSize + 8 + 8
	if len(head) != int(n) || len(head) < fixed || string(head[:len(snapshotMagic)]) != snapshotMagic {
		return nil, errors.New("this is no snapshot of zkgo")
	}
	b := head[len(snapshotMagic):]
	if f := binary.BigEndian.Uint32(b); f != snapshotFormat {
		return nil, fmt.Errorf("snapshot of format %d, this server knows %d", f, snapshotFormat)
	}
	h := &snapshotHeader{incarnation: binary.BigEndian.Uint64(b[4:]), seq: binary.BigEndian.Uint64(b[12:]), level: binary.BigEndian.Uint32(b[20:])}
	copy(h.cluster[:], b[24:])
	b = b[24+command.ClusterIDSize:]
	h.index, h.digest = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	rec := proto.NewReader(b[16:])
	h.config, h.table = rec.Buffer(), rec.Buffer()
	if err := rec.Err(); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return h, h.mirror.Decode(rec.Rest())
}

// decodeSessions decodes the sessions into a table.
func (h *snapshotHeader) decodeSessions(t *session.Table) error {
	rest, err := t.DecodeFrom(h.table)
	if err == nil && len(rest) != 0 {
		err = fmt.Errorf("%d bytes after the sessions", len(rest))
	}
	return err
}

// enter makes the header a part of the machine's state.
func (h *snapshotHeader) enter(m *Machine) error {
	if h.level > m.Newest {
		return fmt.Errorf("snapshot: %w", m.tooNew(h.level))
	}
	m.Incarnation, m.Seq, m.Level, m.Cluster, m.Index, m.Config = h.incarnation, h.seq, h.level, h.cluster, h.index, h.config
	m.Mirror = h.mirror
	m.Mirroring.notify()
	return h.decodeSessions(m.Sessions)
}
