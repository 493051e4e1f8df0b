package raftlog

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft-wal/types"

	"github.com/zkgo/zkgo/internal/vfs"
)

// segment is one file of the log. One goroutine appends; many may read.
type segment struct {
	info  types.SegmentInfo
	path  string
	files *segmentFiles
	f     vfs.File
	salt  uint64

	mu    sync.RWMutex
	spans []span // spans of entries that are stored or being stored, starting at info.BaseIndex

	last  atomic.Uint64 // newest index, 0 for none
	tail  *tail         // set for the last segment; nil: this segment is read-only
	close sync.Once
}

var _ types.SegmentWriter = (*segment)(nil)

func createSegment(fsys vfs.FS, path string, info types.SegmentInfo) (*segment, error) {
	f, err := fsys.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o640)
	if err != nil {
		return nil, err
	}
	g := &segment{info: info, path: path, f: f, salt: newSalt()}
	size := segmentSize(info)
	b := make([]byte, size)
	copy(b, encodeSegmentHeader(info, g.salt))
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		g.tail, err = openTail(fsys, path, f, segHeaderLen, size)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return g, nil
}

// segmentSize is the size of a segment before its first batch. The zeros are on disk
// before the list names the file: a listed file that is shorter was truncated.
func segmentSize(info types.SegmentInfo) int64 {
	return vfs.BlockEnd(min(zeroAheadMin, max(int64(info.SizeLimit), segHeaderLen)))
}

// openSegment opens an existing file. The caller handles what the scan found after the
// last whole batch.
func openSegment(fsys vfs.FS, path string, info types.SegmentInfo, flag int) (*segment, *scan, error) {
	f, err := fsys.OpenFile(path, flag, 0)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	s, err := scanSegment(f, st.Size(), info)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	g := &segment{info: info, path: path, f: f, salt: s.salt, spans: s.spans}
	if len(g.spans) > 0 {
		g.last.Store(info.BaseIndex + uint64(len(g.spans)) - 1)
	}
	return g, s, nil
}

// cut overwrites everything after the last whole batch with zeros.
func (g *segment) cut(s *scan) error {
	for at := s.end; at < s.size; {
		n := min(zeroAheadMax, s.size-at)
		if _, err := g.f.WriteAt(zeros()[:n], at); err != nil {
			return err
		}
		at += n
	}
	return g.f.Sync()
}

// Append implements types.SegmentWriter: one write, one fdatasync. If files.launch is set
// it doesn't wait for them.
func (g *segment) Append(entries []types.LogEntry) error {
	if len(entries) == 0 {
		return nil
	}
	if next := g.info.BaseIndex + uint64(len(g.spans)); entries[0].Index != next {
		return fmt.Errorf("%s: append of log index %d where %d follows", g.path, entries[0].Index, next)
	}
	at, h, err := g.tail.write(g.files.flights, g.salt, entries, int64(g.info.SizeLimit), g.files.launch)
	if err != nil {
		return fmt.Errorf("%s: %w", g.path, err)
	}
	spans, err := batchSpans(g.spans, h, g.tail.batch[h.size:], at+int64(h.size))
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.spans = spans
	g.mu.Unlock()
	g.last.Store(entries[len(entries)-1].Index)
	if cap(g.tail.batch) > maxSpare {
		g.tail.batch = nil
	}
	return nil
}

// Sealed implements types.SegmentWriter. It returns true for a full segment, so that
// raft-wal starts the next one. Appending would still be possible, and does happen after
// a stop before the next segment was started.
func (g *segment) Sealed() (bool, uint64, error) {
	if g.tail.end < int64(g.info.SizeLimit) {
		return false, 0, nil
	}
	g.files.beginRotation()
	return true, uint64(g.tail.end), nil
}

// LastIndex implements types.SegmentWriter.
func (g *segment) LastIndex() uint64 { return g.last.Load() }

// GetLog implements types.SegmentReader. The caller owns the bytes. GetLog waits for an
// entry that is being stored.
func (g *segment) GetLog(index uint64) (*types.PooledBuffer, error) {
	if !g.files.flights.await(index) {
		return nil, ErrClosed
	}
	g.mu.RLock()
	spans := g.spans
	g.mu.RUnlock()
	if index < g.info.BaseIndex || index < g.info.MinIndex || index-g.info.BaseIndex >= uint64(len(spans)) {
		return nil, types.ErrNotFound
	}
	at := spans[index-g.info.BaseIndex]
	b := make([]byte, at.len)
	if _, err := g.f.ReadAt(b, int64(at.off)); err != nil {
		return nil, err
	}
	return &types.PooledBuffer{Bs: b}, nil
}

// Close implements io.Closer.
func (g *segment) Close() (err error) {
	g.close.Do(func() {
		g.files.closed(g)
		err = errors.Join(g.tail.close(), g.f.Close())
	})
	return err
}
