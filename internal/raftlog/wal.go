package raftlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/storage"
)

const walDirName = "wal"

// wal is the default engine: a log in segment files, LogDir/wal/*.seg, and LogDir/wal/meta.
//
// A segment ends at the start of the next one. So a new list of segments in the metadata
// is enough for three changes. To continue after a full segment, we add one. To remove
// entries from the end, we add a segment that starts at the first removed entry. To
// remove entries from the front, we drop the segments that contain only removed entries.
// We make a new file durable before the list names it, and remove a file after the list
// has dropped it.
type wal struct {
	fs       vfs.FS
	dir      string
	health   *health
	limit    int64 // size at which a segment is full
	meta     *meta
	removals *removals
	next     *task // starts the next segment; nil: already started. Owned by the goroutine that writes

	mu       sync.RWMutex
	first    uint64     // index of the first entry, if there is one
	segments []*segment // oldest first. Its elements aren't replaced
}

// openWAL opens or creates a log. h gets the errors that no call can return.
func openWAL(o Options, h *health) (storage.Engine, error) {
	dir := filepath.Join(o.LogDir, walDirName)
	if err := vfs.MkdirSynced(o.FS, dir); err != nil {
		return nil, err
	}
	m, err := openMeta(o.FS, dir)
	if err != nil {
		return nil, err
	}
	w := &wal{fs: o.FS, dir: dir, health: h, limit: int64(o.SegmentBytes), meta: m, removals: newRemovals(o), first: m.state.First}
	if err := w.open(o); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *wal) open(o Options) error {
	list := w.meta.state.Segments
	if err := removeUnknown(w.fs, w.dir, list); err != nil {
		return err
	}
	for _, id := range list { // they were written past the page cache
		if f, err := w.fs.OpenFile(filepath.Join(w.dir, id.name()), os.O_RDONLY, 0); err == nil {
			vfs.WillRead(f)
			_ = f.Close() // nothing was written
		}
	}
	var buf []byte // for all segments: fresh memory for each would cost more than reading it
	for i, id := range list {
		g, err := openSegment(w.fs, w.dir, w.health, id, segmentEnd(list, i), &buf, o.Logger)
		if err != nil {
			return err
		}
		w.segments = append(w.segments, g)
	}
	return nil
}

// segmentEnd returns the first index after segment i.
func segmentEnd(list []segmentID, i int) uint64 {
	if i+1 < len(list) {
		return list[i+1].base
	}
	return openEnd
}

// Range implements storage.Engine. The last segment is empty after the previous one was
// filled; or it is the only one, and the machine stopped before the first batch was
// complete.
func (w *wal) Range() (first, last uint64, _ error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	n := len(w.segments)
	if n == 0 || w.segments[n-1].next() == w.first {
		return 0, 0, nil
	}
	return w.first, w.segments[n-1].next() - 1, nil
}

// segmentOf returns the segment for an index, or nil if no segment covers it.
func (w *wal) segmentOf(index uint64) *segment {
	for _, g := range slices.Backward(w.segments) {
		if g.base <= index {
			return g
		}
	}
	return nil
}

// GetLog implements storage.Engine. A concurrent removal may close the file.
func (w *wal) GetLog(index uint64, l *raft.Log) error {
	w.mu.RLock()
	g := w.segmentOf(index)
	if g == nil || index < w.first || index >= g.next() {
		w.mu.RUnlock()
		return raft.ErrLogNotFound
	}
	at := g.spans[index-g.base]
	w.mu.RUnlock()
	b := make([]byte, at.len)
	if _, err := g.f.ReadAt(b, int64(at.off)); err != nil {
		return err
	}
	return decodeEntry(b, l)
}

// StoreLogs implements storage.Engine: one write and one fdatasync. A segment that it fills
// gets its successor in the background, and the next call that writes waits for that.
func (w *wal) StoreLogs(logs []*raft.Log) error {
	if err := w.next.wait(); err != nil {
		return err
	}
	if _, last, _ := w.Range(); last == 0 {
		if err := w.begin(logs[0].Index); err != nil {
			return err
		}
	}
	g := w.segments[len(w.segments)-1]
	spans, err := g.tail.write(g.spans, g.salt, logs)
	if err != nil {
		return err
	}
	w.mu.Lock()
	g.spans = spans
	w.mu.Unlock()
	if g.tail.full() {
		w.next = w.health.background(func() error { return w.extend(g.next(), w.first, w.segments) })
	}
	return nil
}

// begin starts an empty log at an index.
func (w *wal) begin(index uint64) error {
	if len(w.segments) == 1 && w.segments[0].base == index {
		return nil
	}
	return w.extend(index, index, nil)
}

// extend starts a new segment at an index, after some of the existing segments.
func (w *wal) extend(index, first uint64, keep []*segment) error {
	g, err := createSegment(w.fs, w.dir, w.health, index, w.limit)
	if err != nil {
		return fmt.Errorf("%s: starting a segment at log index %d: %w", w.dir, index, err)
	}
	if err := w.set(first, append(slices.Clip(keep), g)); err != nil {
		return errors.Join(err, g.close())
	}
	if len(keep) == 0 {
		return nil
	}
	last := keep[len(keep)-1]
	err = last.tail.close()
	last.tail = nil
	return err
}

// set makes these segments the log, and removes the others.
func (w *wal) set(first uint64, segments []*segment) error {
	ids := make([]segmentID, len(segments))
	for i, g := range segments {
		ids[i] = g.segmentID
	}
	if err := w.meta.change(func(s *metaState) { s.First, s.Segments = first, ids }); err != nil {
		return err
	}
	w.mu.Lock()
	old := w.segments
	w.first, w.segments = first, segments
	w.mu.Unlock()
	var errs []error
	for _, g := range old {
		if !slices.Contains(segments, g) {
			errs = append(errs, g.close())
			w.removals.add(g.path)
		}
	}
	return errors.Join(errs...)
}

// DeleteRange implements storage.Engine.
func (w *wal) DeleteRange(lo, hi uint64) error {
	if err := w.next.wait(); err != nil {
		return err
	}
	first, last, _ := w.Range()
	keep := w.segments
	switch {
	case lo <= first && hi >= last:
		return w.set(0, nil)
	case lo <= first:
		for len(keep) > 1 && keep[1].base <= hi+1 {
			keep = keep[1:]
		}
		return w.set(hi+1, keep)
	}
	for keep[len(keep)-1].base >= lo {
		keep = keep[:len(keep)-1]
	}
	w.mu.Lock()
	g := keep[len(keep)-1]
	g.spans = g.spans[:lo-g.base]
	w.mu.Unlock()
	return w.extend(lo, first, keep)
}

// LoadRecord implements storage.Engine. It is called before SaveRecord.
func (w *wal) LoadRecord() ([]byte, error) { return w.meta.state.Record, nil }

// SaveRecord implements storage.Engine.
func (w *wal) SaveRecord(rec []byte) error {
	return w.meta.change(func(s *metaState) { s.Record = rec })
}

// Where implements storage.Engine.
func (w *wal) Where(index uint64) string {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if g := w.segmentOf(index); g != nil {
		return g.path
	}
	if index == 0 {
		return w.meta.path
	}
	return w.dir
}

// Close implements storage.Engine.
func (w *wal) Close() error {
	_ = w.next.wait() // the store's health has the error
	var errs []error
	for _, g := range w.segments {
		errs = append(errs, g.close())
	}
	return errors.Join(append(errs, w.removals.wait())...)
}
