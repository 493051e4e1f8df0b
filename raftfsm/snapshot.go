package raftfsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/snapio"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// The layout of a snapshot, inside the chunks of snapio:
//
//	snapshot = magic:8 format:4 incarnation:8 seq:8 level:4 cluster:16 index:8
//	           digest:8 config:buffer sessions:buffer
//	           tree
//
// digest is the digest of tree and sessions that batches carry, too.

const (
	snapshotMagic  = "zkgosnap"
	snapshotFormat = 1
	// maxSnapshotHeader bounds the header before the tree, which allows for about 30
	// million sessions.
	maxSnapshotHeader = 1 << 30
)

// image is the state at one index, to be written while the machine continues. Without a
// tree it writes nothing, and only lets Raft truncate the log.
type image struct {
	head []byte
	tree *tree.Snapshot

	numbers *Numbers    // counts the snapshots written
	pace    snapio.Pace // of the write

	zxid    int64
	written func(zxid, bytes int64) // called after the snapshot is durable
}

var _ raft.FSMSnapshot = (*image)(nil)

// Snapshot captures the state. Only the capture stalls the machine; the tree changes
// while it is written.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	if m.stopped {
		return nil, errors.New("the state machine has stopped")
	}
	m.tree.Lock()
	defer m.tree.Unlock()
	if m.fleeting {
		m.snapCounter.reset()
		return &image{}, nil
	}
	if m.arriving != nil {
		return nil, errArriving
	}
	m.snapCounter.reset()
	return &image{head: m.appendHeader(nil), tree: m.tree.Snapshot(), numbers: &m.numbers,
		pace: snapio.Pace{Hurry: m.hurry, Busy: m.busy(), Late: m.snapCounter.late.Load},
		zxid: m.tree.LastZxid(), written: m.written}, nil
}

// busy returns a function that reports whether entries were applied since its last
// call.
func (m *machine) busy() func() bool {
	seen := m.claim.Load()
	return func() bool {
		before := seen
		seen = m.claim.Load()
		return seen != before
	}
}

// appendHeader appends everything before the tree.
func (m *machine) appendHeader(b []byte) []byte {
	b = append(b, snapshotMagic...)
	b = binary.BigEndian.AppendUint32(b, snapshotFormat)
	b = binary.BigEndian.AppendUint64(b, m.incarnation)
	b = binary.BigEndian.AppendUint64(b, m.seq)
	b = binary.BigEndian.AppendUint32(b, m.level)
	b = append(b, m.cluster[:]...)
	b = binary.BigEndian.AppendUint64(b, m.index)
	b = binary.BigEndian.AppendUint64(b, m.tree.FullDigest()^m.rows)
	b = proto.AppendBuffer(b, m.config)
	return proto.AppendBuffer(b, m.sessions.AppendTo(nil))
}

// Persist writes the image.
func (i *image) Persist(sink raft.SnapshotSink) error {
	begin := time.Now()
	size := &countingWriter{w: sink}
	if err := i.write(size); err != nil {
		_ = sink.Cancel()
		return fmt.Errorf("writing snapshot: %w", err)
	}
	err := sink.Close()
	if err == nil && i.tree != nil {
		i.numbers.Snapshot.Since(begin)
		i.numbers.SnapSize.Store(size.n)
		i.written(i.zxid, size.n)
	}
	return err
}

// countingWriter counts the bytes written.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

func (i *image) write(w io.Writer) error {
	if i.tree == nil {
		return nil
	}
	i.numbers.Writing.Add(1)
	defer i.numbers.Writing.Add(-1)
	c := snapio.NewWriter(i.pace.To(w))
	head := binary.BigEndian.AppendUint32(nil, uint32(len(i.head)))
	if _, err := c.Write(append(head, i.head...)); err != nil {
		return err
	}
	if _, err := i.tree.WriteTo(c); err != nil {
		return err
	}
	return c.Close()
}

// Release releases the captured tree.
func (i *image) Release() {
	if i.tree != nil {
		i.tree.Release()
	}
}

// Restore replaces the state of a running server. It drops the clients' connections
// first, because the entries that the snapshot skips complete no requests and fire no
// watches. A failure stops the server, because the state is incomplete.
func (m *machine) Restore(r io.ReadCloser) error {
	defer r.Close()
	if m.stopped {
		return errors.New("the state machine has stopped")
	}
	m.tree.Lock()
	defer m.tree.Unlock()
	m.intake.Lose()
	m.handler.Jumped()
	m.drop(errRestoreSkipped)
	before := m.index
	err := m.load(r)
	if err == nil && m.index <= before {
		err = fmt.Errorf("it ends at index %d, behind entry %d, which is applied already", m.index, before)
	}
	if err != nil {
		err = fmt.Errorf("restoring a snapshot: %w", err)
		m.stop(err)
	}
	m.frozen = m.freezeNext.Swap(false)
	m.applied(m.index)
	return err
}

// load replaces the state with the snapshot in r. The caller holds the tree's lock.
func (m *machine) load(r io.Reader) error {
	c := snapio.NewReader(r)
	h, err := readSnapshotHeader(c)
	if err == nil {
		err = m.takeHeader(h)
	}
	if err != nil {
		return err
	}
	if err := m.tree.Restore(c); err != nil {
		return fmt.Errorf("tree: %w", err)
	}
	if err := c.End(); err != nil {
		return err
	}
	m.rows = 0
	for row := range m.sessions.All {
		m.rows ^= rowDigest(row)
	}
	if got := m.tree.FullDigest() ^ m.rows; got != h.digest {
		return fmt.Errorf("the state has digest %#x, the snapshot says %#x", got, h.digest)
	}
	m.digests = digestRing{}
	m.digests.note(command.Check{Index: m.index, Digest: h.digest})
	m.claim.Store(nil)
	m.snapCounter.reset()
	if m.incarnation != 0 {
		// The snapshot doesn't say which server leads in this incarnation, and the
		// entry that does may be one that the snapshot replaces.
		m.post([]event{{kind: evStarted, server: membership.NoServer, incarnation: m.incarnation}})
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
	rest        int    // bytes after the table, which should be 0
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
	h.rest = rec.Len()
	return h, nil
}

// decodeSessions decodes the sessions into a table.
func (h *snapshotHeader) decodeSessions(t *session.Table) error {
	rest, err := t.DecodeFrom(h.table)
	if err == nil && len(rest)+h.rest != 0 {
		err = fmt.Errorf("%d bytes after the sessions", len(rest)+h.rest)
	}
	return err
}

// takeHeader makes the header part of this machine's state.
func (m *machine) takeHeader(h *snapshotHeader) error {
	if h.level > m.newest {
		return fmt.Errorf("snapshot: %w", m.tooNew(h.level))
	}
	m.incarnation, m.seq, m.level, m.cluster, m.index, m.config = h.incarnation, h.seq, h.level, h.cluster, h.index, h.config
	return h.decodeSessions(m.sessions)
}

// snapCounter decides when the next snapshot is due: after limitOps transactions or
// limitBytes bytes of log. Each limit is the maximum less a random part of up to half,
// so that the servers don't all write at once.
type snapCounter struct {
	maxOps   int
	maxBytes int64
	trigger  chan struct{}

	ops        int
	bytes      int64
	limitOps   int
	limitBytes int64

	late atomic.Bool // set after lateAfter times maxOps transactions, or maxBytes bytes
}

// lateAfter times snapCount transactions may wait for replay before a snapshot hurries.
// That is half a second of replay by default.
const lateAfter = 4

// reset restarts the count after a snapshot. It drains the trigger, because entries
// applied since the last trigger have requested the same snapshot again.
func (c *snapCounter) reset() {
	select {
	case <-c.trigger:
	default:
	}
	c.ops, c.bytes = 0, 0
	c.late.Store(false)
	c.limitOps = c.maxOps - rand.IntN(c.maxOps/2+1)
	c.limitBytes = c.maxBytes - rand.Int64N(c.maxBytes/2+1)
}

// soon makes the next snapshot due immediately.
func (c *snapCounter) soon() { c.limitOps = 0 }

// poke triggers a snapshot if one is due.
func (c *snapCounter) poke() {
	if c.ops < c.limitOps && c.bytes < c.limitBytes {
		return
	}
	if c.ops >= lateAfter*c.maxOps || c.bytes >= c.maxBytes {
		c.late.Store(true)
	}
	select {
	case c.trigger <- struct{}{}:
	default:
	}
}
