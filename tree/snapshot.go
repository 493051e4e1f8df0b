package tree

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/acl"
	"github.com/zkgo/zkgo/tree/internal/arena"
)

// Snapshot is the tree as it was when Tree.Snapshot was called. Taking it costs
// microseconds. We write it in the background while transactions continue.
//
// A node's epoch is the newest snapshot's at the time of the node's last change. Before the
// first change after a snapshot, we copy the node's state to the snapshot's images, unless
// the writer has already passed the node's number. The writer therefore finds every node
// exactly once: unchanged in its slot, or among the images. A node created after the
// snapshot starts with the snapshot's epoch.
type Snapshot struct {
	t      *Tree
	epoch  uint32
	zxid   int64
	count  int
	totals totals
	full   uint64
	end    arena.Number // greater than the numbers of the snapshot's nodes

	// Guarded by the tree's lock.
	passed arena.Number // nodes with smaller numbers are written
	images [][]image    // nodes that changed before the writer passed them; see keep
	err    error        // why nothing more can be written
}

// image is the state of a node for a snapshot.
type image struct {
	arena.State
	kids int32
}

// errReleased reports that a snapshot is written after its release.
var errReleased = errors.New("tree: snapshot was released")

// Snapshot starts a snapshot of the current state. The caller holds the lock for writing,
// and must call Release when it no longer needs the snapshot.
func (t *Tree) Snapshot() *Snapshot {
	t.epoch++
	s := &Snapshot{t: t, epoch: t.epoch, zxid: t.zxid, count: t.arena.Len(), totals: t.totals, full: t.FullDigest(), end: t.arena.End()}
	t.snaps = append(t.snaps, s)
	return s
}

// Zxid returns the zxid of the newest transaction that the snapshot contains.
func (s *Snapshot) Zxid() int64 { return s.zxid }

// Release ends the snapshot, so that no more images are kept. It acquires the tree's
// lock.
func (s *Snapshot) Release() {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	s.drop(errReleased)
}

// drop ends the snapshot. The caller holds the tree's lock.
func (s *Snapshot) drop(err error) {
	s.t.snaps = slices.DeleteFunc(s.t.snaps, func(o *Snapshot) bool { return o == s })
	s.images = nil
	if s.err == nil {
		s.err = err
	}
}

// preserve saves n's state for the snapshots that haven't written it yet. It must
// be called before n changes or leaves the tree.
func (t *editor) preserve(n *node) {
	if n.Epoch() == t.epoch {
		return
	}
	for _, s := range t.snaps {
		if n.Epoch() < s.epoch && n.Number() >= s.passed {
			s.keep(imageOf(n))
		}
	}
	n.SetEpoch(t.epoch)
}

// keep adds an image. We keep images in several lists: a single list would be copied
// repeatedly while it grows, and transactions would wait for that.
func (s *Snapshot) keep(i image) {
	last := len(s.images) - 1
	if last < 0 || len(s.images[last]) == collectTarget {
		s.images = append(s.images, make([]image, 0, collectTarget))
		last++
	}
	s.images[last] = append(s.images[last], i)
}

func imageOf(n *node) image { return image{*n.State(), int32(n.NumChildren())} }

// WriteTo writes the snapshot. It may run concurrently with transactions, and acquires
// the tree's lock for reading for short periods. A snapshot can be written only once.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	p := snapshotWriter{blockWriter: newBlockWriter(w), lists: make(map[*acl.Entry]uint32)}
	err := p.write([]byte(magic))
	if err == nil {
		p.buf = append(p.buf, tagHeader)
		p.buf = proto.AppendLong(p.buf, s.zxid)
		p.buf = proto.AppendLong(p.buf, int64(s.count))
		err = s.writeNodes(&p)
	}
	if err == nil {
		p.buf = append(p.buf, tagTrailer)
		p.buf = proto.AppendLong(p.buf, int64(p.nodes))
		p.buf = proto.AppendLong(p.buf, int64(s.totals.digest))
		p.buf = proto.AppendLong(p.buf, int64(s.full))
		err = p.flush(0)
	}
	if err != nil {
		err = fmt.Errorf("tree: writing the snapshot at zxid %#x: %w", s.zxid, err)
	}
	return p.n, err
}

// writeNodes writes all nodes: first the unchanged nodes, in the order of their numbers,
// then the images of the others.
func (s *Snapshot) writeNodes(p *snapshotWriter) error {
	var batch []image
	for more := true; more; {
		var err error
		if batch, more, err = s.collect(batch[:0], collectTarget); err != nil {
			return err
		}
		prefetchTexts(batch)
		for i := range batch {
			if err := p.node(&batch[i]); err != nil {
				return err
			}
		}
		clear(batch) // keep no data alive
	}
	if p.nodes != s.count {
		return fmt.Errorf("found %d nodes instead of %d", p.nodes, s.count)
	}
	return nil
}

// prefetchTexts prefetches the texts of all images. They are scattered in memory, and
// reading them one after another waits for each.
//
//go:noinline
func prefetchTexts(images []image) (seen byte) {
	for i := range images {
		seen ^= images[i].Glance()
	}
	return seen
}

// Limits of one call of collect, which holds the lock: about collectTarget nodes, from at
// most collectBlocks blocks.
const (
	collectTarget = 256
	collectBlocks = 32
)

// collect appends the states of about target more nodes to batch. We copy only references
// under the lock, because paths, data and lists never change.
func (s *Snapshot) collect(batch []image, target int) ([]image, bool, error) {
	s.t.mu.RLock()
	defer s.t.mu.RUnlock()
	if s.err != nil {
		return nil, false, s.err
	}
	target += len(batch)
	for blocks := 0; s.passed < s.end && len(batch) < target && blocks < collectBlocks; blocks++ {
		slots, next := s.t.arena.Slots(s.passed)
		if room := target - len(batch); room < len(slots) {
			slots, next = slots[:room], s.passed+arena.Number(room)
		}
		for i := range slots {
			if n := &slots[i]; !n.IsVacant() && n.Epoch() < s.epoch {
				batch = append(batch, imageOf(n))
			}
		}
		s.passed = next
	}
	// Once we have passed every number, no more images are added.
	if s.passed == s.end && len(batch) < target && len(s.images) > 0 {
		batch = append(batch, s.images[0]...)
		s.images = s.images[1:]
	}
	return batch, s.passed < s.end || len(s.images) > 0, nil
}

// snapshotWriter writes nodes and the lists they use.
type snapshotWriter struct {
	*blockWriter
	lists map[*acl.Entry]uint32
	nodes int
}

func (p *snapshotWriter) node(m *image) error {
	list, known := p.lists[m.ACL]
	if !known {
		list = uint32(len(p.lists))
		p.lists[m.ACL] = list
		p.buf = proto.AppendInt(append(p.buf, tagList), int32(list))
		p.buf = proto.AppendACLs(p.buf, m.ACL.List())
	}
	p.buf = appendNode(p.buf, &m.State, list, m.kids)
	p.nodes++
	return p.flush(blockTarget)
}
