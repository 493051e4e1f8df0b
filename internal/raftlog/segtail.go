package raftlog

import (
	"fmt"
	"math"
	"os"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/vfs"
)

// We extend a segment with zeros in advance, because overwriting existing blocks is twice
// as fast as growing a file. The first stretch is short, for small stores.
const (
	zeroAheadMin = 64 << 10
	zeroAheadMax = 1 << 20
)

// zeroAhead returns how many zeros there should be after the end of a segment.
func zeroAhead(end int64) int64 { return min(max(end, zeroAheadMin), zeroAheadMax) }

// zeros returns a read-only block of zeroAheadMax zeros.
var zeros = sync.OnceValue(func() []byte { return vfs.Blocks(zeroAheadMax)[:zeroAheadMax] })

// maxSpare is the largest buffer that is kept for reuse.
const maxSpare = 4 << 20

// tail is the end of the last segment, where batches are written, one at a time. We write
// whole blocks and bypass the page cache, because that is faster. A batch directly
// follows the previous one, so we write the used part of its first block again.
//
// The zeros after the end grow in the background, because a stretch of 1 MiB costs as
// much time as several batches. A batch waits only if it extends into zeros that aren't
// on disk yet.
type tail struct {
	w      vfs.File // for writing only
	path   string
	health *health
	limit  int64  // the segment is full from here on
	end    int64  // end of the newest batch
	size   int64  // of the file, with the zeros that are being written; zeros between end and size
	buf    []byte // of vfs.Blocks; between writes the used part of the block that contains end
	growth *task  // writes the newest zeros; nil: no zeros were written
	grown  int64  // start of the newest zeros
}

// openTail opens the end of a segment with content b.
func openTail(fsys vfs.FS, path string, h *health, b []byte, end, limit int64) (*tail, error) {
	w, err := fsys.OpenFile(path, os.O_RDWR|vfs.Direct, 0)
	if err != nil {
		return nil, err
	}
	return &tail{
		w: w, path: path, health: h, limit: limit, end: end, size: vfs.BlockEnd(int64(len(b))),
		buf: append(vfs.Blocks(vfs.BlockSize), b[vfs.BlockStart(end):end]...),
	}, nil
}

func (t *tail) full() bool { return t.end >= t.limit }

// write writes entries as one batch durably, and appends their positions to spans.
func (t *tail) write(spans []span, salt uint64, logs []*raft.Log) ([]span, error) {
	from, stop := vfs.BlockStart(t.end), t.end+int64(batchLen(logs))
	if stop > math.MaxUint32 {
		return spans, fmt.Errorf("log index %d: segment would exceed %d bytes", logs[0].Index, uint32(math.MaxUint32))
	}
	to := vfs.BlockEnd(stop)
	if to > t.size {
		to = vfs.BlockEnd(stop + min(zeroAhead(stop), max(0, t.limit-stop)))
		t.size = to
	}
	if n := int(to - from); cap(t.buf) < n {
		t.buf = append(vfs.Blocks(n+n/4), t.buf...)
	}
	begin := len(t.buf)
	t.buf = appendBatch(t.buf, salt, logs)
	spans, err := batchSpans(spans, t.buf[begin:], t.end)
	blocks := t.buf[:to-from]
	clear(blocks[len(t.buf):])
	if to > t.grown && err == nil {
		err = t.growth.wait() // otherwise its zeros might be written after the batch
	}
	if err == nil {
		err = vfs.WriteDurably(t.w, blocks, from)
	}
	if err != nil {
		return spans, err
	}
	used := t.buf[vfs.BlockStart(stop)-from:]
	if t.buf = append(t.buf[:0], used...); cap(t.buf) > maxSpare {
		t.buf = append(vfs.Blocks(vfs.BlockSize), t.buf...)
	}
	t.end = stop
	t.grow()
	return spans, nil
}

// grow starts to write more zeros if there are too few. The previous ones are on disk
// then, because a batch already extends into them.
func (t *tail) grow() {
	ahead := zeroAhead(t.end)
	if t.size-t.end >= ahead/2 || t.size >= t.limit {
		return
	}
	from, to := t.size, vfs.BlockEnd(min(t.size+ahead, t.limit))
	t.grown, t.size = from, to
	t.growth = t.health.background(func() error {
		_, err := t.w.WriteAt(zeros()[:to-from], from)
		if err == nil {
			err = t.w.Sync() // of the new file size, too
		}
		if err != nil {
			return fmt.Errorf("%s: growing it: %w", t.path, err)
		}
		return nil
	})
}

// close closes the file once no goroutine writes to it.
func (t *tail) close() error {
	if t == nil {
		return nil
	}
	_ = t.growth.wait() // the store's health has the error
	return t.w.Close()
}
