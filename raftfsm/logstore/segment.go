package logstore

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft-wal/types"

	"github.com/zkgo/zkgo/raftfsm/disk"
)

const (
	// Zeros are written ahead of the end, together with an append now and then:
	// overwriting blocks that exist takes the disk half as long as growing a
	// file. The first stretch is short, for stores that hold next to nothing.
	zeroAheadMin = 64 << 10
	zeroAheadMax = 1 << 20
)

// segment is one file of the log. One goroutine appends, many may read.
type segment struct {
	info  types.SegmentInfo
	path  string
	files *segmentFiles
	f     disk.File
	salt  uint64

	mu    sync.RWMutex
	spans []span // of acknowledged entries, from info.BaseIndex on

	last  atomic.Uint64 // newest acknowledged index, 0 for none
	end   int64         // where the next batch goes
	size  int64         // of the file; zeros between end and size
	torn  bool          // not only zeros: see cut
	buf   []byte
	close sync.Once
}

var _ types.SegmentWriter = (*segment)(nil)

func createSegment(fsys disk.FS, path string, info types.SegmentInfo) (*segment, error) {
	f, err := fsys.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o640)
	if err != nil {
		return nil, err
	}
	g := &segment{info: info, path: path, f: f, salt: newSalt(), end: segHeaderLen, size: segHeaderLen}
	_, err = f.WriteAt(encodeSegmentHeader(info, g.salt), 0)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return g, nil
}

func openSegment(fsys disk.FS, path string, info types.SegmentInfo, flag int) (*segment, error) {
	f, err := fsys.OpenFile(path, flag, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s, err := scanSegment(f, st.Size(), info)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	g := &segment{info: info, path: path, f: f, salt: s.salt, spans: s.spans, end: s.end, size: s.size, torn: s.torn}
	if len(g.spans) > 0 {
		g.last.Store(info.BaseIndex + uint64(len(g.spans)) - 1)
	}
	return g, nil
}

// cut replaces everything behind the last whole batch by zeros.
func (g *segment) cut() error {
	zeros := make([]byte, zeroAheadMax)
	for at := g.end; at < g.size; {
		n := min(int64(len(zeros)), g.size-at)
		if _, err := g.f.WriteAt(zeros[:n], at); err != nil {
			return err
		}
		at += n
	}
	g.torn = false
	return g.f.Sync()
}

// Append implements types.SegmentWriter: one write, one fdatasync.
func (g *segment) Append(entries []types.LogEntry) error {
	if len(entries) == 0 {
		return nil
	}
	if next := g.info.BaseIndex + uint64(len(g.spans)); entries[0].Index != next {
		return fmt.Errorf("%s: append of log index %d where %d follows", g.path, entries[0].Index, next)
	}
	g.buf = appendBatch(g.buf[:0], g.salt, entries)
	n := int64(len(g.buf))
	if g.end+n > math.MaxUint32 {
		return fmt.Errorf("%s: log index %d: segment would exceed %d bytes", g.path, entries[0].Index, uint32(math.MaxUint32))
	}
	h, _ := getBatchHeader(g.buf, g.salt)
	spans, err := batchSpans(g.spans, h, g.buf[batchHeaderLen:], g.end+batchHeaderLen)
	if err != nil {
		return err
	}
	if err := g.writeOut(); err != nil {
		return fmt.Errorf("%s: %w", g.path, err)
	}
	g.end += n
	g.size = max(g.size, g.end)
	g.mu.Lock()
	g.spans = spans
	g.mu.Unlock()
	g.last.Store(entries[len(entries)-1].Index)
	if cap(g.buf) > 4*zeroAheadMax {
		g.buf = nil
	}
	return nil
}

func (g *segment) writeOut() error {
	n := len(g.buf)
	if stop := g.end + int64(n); stop > g.size {
		ahead := min(max(stop, zeroAheadMin), zeroAheadMax)
		ahead = min(ahead, max(0, int64(g.info.SizeLimit)-stop))
		g.buf = append(g.buf, make([]byte, ahead)...)
	}
	if _, err := g.f.WriteAt(g.buf, g.end); err != nil {
		return err
	}
	g.size = max(g.size, g.end+int64(len(g.buf)))
	return g.f.Datasync()
}

// Sealed implements types.SegmentWriter. It says yes for a full segment and
// so makes raft-wal start the next one. Appending would still be possible,
// which is what happens after a stop before the next one was started.
func (g *segment) Sealed() (bool, uint64, error) {
	if g.end < int64(g.info.SizeLimit) {
		return false, 0, nil
	}
	g.files.beginRotation()
	return true, uint64(g.end), nil
}

// LastIndex implements types.SegmentWriter.
func (g *segment) LastIndex() uint64 { return g.last.Load() }

// GetLog implements types.SegmentReader. The bytes are the caller's.
func (g *segment) GetLog(index uint64) (*types.PooledBuffer, error) {
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
		err = g.f.Close()
	})
	return err
}
