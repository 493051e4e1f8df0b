package apply

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
	"github.com/zkgo/zkgo/raftfsm/internal/snapio"
	"github.com/zkgo/zkgo/tree"
)

// The layout of a snapshot, inside the chunks of snapio:
//
//	snapshot = magic:8 format:4 incarnation:8 seq:8 level:4 cluster:16 index:8
//	           digest:8 config:buffer sessions:buffer mirror
//	           tree
//
// digest is the digest of tree and sessions that batches carry, too. mirror is empty if
// there is no mirror (Mirror.appendTo).

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

	numbers *Counters   // counts the snapshots written
	pace    snapio.Pace // of the write

	zxid    int64
	written func(zxid, bytes int64) // called after the snapshot is durable
}

var _ raft.FSMSnapshot = (*image)(nil)

// Snapshot captures the state. Only the capture stalls the machine; the tree changes
// while it is written.
func (m *Machine) Snapshot() (raft.FSMSnapshot, error) {
	if m.stopped {
		return nil, errors.New("the state machine has stopped")
	}
	m.Tree.Lock()
	defer m.Tree.Unlock()
	if m.Fleeting {
		m.SnapCounter.reset()
		return &image{}, nil
	}
	if m.Arriving != nil {
		return nil, errArriving
	}
	m.SnapCounter.reset()
	return &image{head: m.appendHeader(nil), tree: m.Tree.Snapshot(), numbers: m.Numbers,
		pace: snapio.Pace{Hurry: m.Hurry, Busy: m.Claims.busy(), Late: m.SnapCounter.late.Load},
		zxid: m.Tree.LastZxid(), written: m.Written}, nil
}

// appendHeader appends everything before the tree.
func (s *State) appendHeader(b []byte) []byte {
	b = append(b, snapshotMagic...)
	b = binary.BigEndian.AppendUint32(b, snapshotFormat)
	b = binary.BigEndian.AppendUint64(b, s.Incarnation)
	b = binary.BigEndian.AppendUint64(b, s.Seq)
	b = binary.BigEndian.AppendUint32(b, s.Level)
	b = append(b, s.Cluster[:]...)
	b = binary.BigEndian.AppendUint64(b, s.Index)
	b = binary.BigEndian.AppendUint64(b, s.digest())
	b = proto.AppendBuffer(b, s.Config)
	return s.Mirror.AppendTo(proto.AppendBuffer(b, s.Sessions.AppendTo(nil)))
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

// Soon makes the next snapshot due immediately.
func (c *snapCounter) Soon() { c.limitOps = 0 }

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

// SnapshotDue returns a channel that receives a value whenever a snapshot is due.
func (m *Machine) SnapshotDue() <-chan struct{} { return m.SnapCounter.trigger }
