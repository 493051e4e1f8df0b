package raftlog

import (
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/hashicorp/raft-wal/types"

	"github.com/zkgo/zkgo/internal/vfs"
)

// tail is the end of the last segment, where batches are written.
//
// Batches are written in whole blocks, past the page cache: in the page cache a second
// write would wait for the first, and even a single write takes longer. If no write is in
// flight a batch directly follows the previous one, and the existing part of its first
// block is written again. Concurrently with another write it starts a new block, because
// the disk may complete two writes to the same block in either order.
type tail struct {
	w     vfs.File // for writing only
	path  string
	end   int64  // end of the newest batch
	size  int64  // size of the file, once growth is done; zeros between end and size
	begun []byte // the part of the block containing end that is before end
	zeros int64  // how far a write in flight extends beyond its batch
	batch []byte // the newest batch

	growth *growth // the newest, perhaps in progress; nil: there was none
}

// openTail opens the end of a segment. r reads the segment.
func openTail(fsys vfs.FS, path string, r vfs.File, end, size int64) (*tail, error) {
	w, err := fsys.OpenFile(path, os.O_RDWR|vfs.Direct, 0)
	if err != nil {
		return nil, err
	}
	t := &tail{w: w, path: path, end: end, size: size, begun: make([]byte, end-vfs.BlockStart(end), vfs.BlockSize)}
	if _, err := r.ReadAt(t.begun, vfs.BlockStart(end)); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return t, nil
}

// write writes the entries as a batch, and returns the batch's offset and header: after
// the batch has landed or, if launch is set, as soon as it is in flight. The segment is
// full from limit on; a batch that goes beyond must land.
func (t *tail) write(all *flights, salt uint64, entries []types.LogEntry, limit int64, launch bool) (at int64, h batchHeader, err error) {
	first := entries[0].Index
	at, open := t.place(all, first)
	t.batch = appendBatch(t.batch[:0], salt, open, entries)
	h, _ = getBatchHeader(t.batch, salt)
	stop := at + int64(len(t.batch))
	if stop > math.MaxUint32 {
		return 0, h, fmt.Errorf("log index %d: segment would exceed %d bytes", first, uint32(math.MaxUint32))
	}
	f := t.fill(all, at, limit)
	f.first, f.counted = first, launch
	t.end, t.size = stop, max(t.size, f.at+int64(len(f.buf)))
	f.growth = t.grow(limit)
	all.depart(f)
	if launch && stop < limit {
		return at, h, all.launch(t.w, t.path, f)
	}
	if err = all.fly(t.w, t.path, f); err == nil {
		err = all.settle()
	}
	return at, h, err
}

// place returns where the next batch goes, and the first entry that may still be missing
// if the batch is on disk.
func (t *tail) place(all *flights, first uint64) (at int64, open uint64) {
	if at = vfs.BlockEnd(t.end); t.zeros > at {
		_ = all.settle() // otherwise the zeros might be written after the batch; after an error nothing counts
	}
	if open = all.pending.Load(); open != 0 {
		return at, open
	}
	t.zeros = 0
	return t.end, first
}

// fill creates a flight for t.batch at offset at.
func (t *tail) fill(all *flights, at, limit int64) *flight {
	stop := at + int64(len(t.batch))
	write := vfs.BlockEnd(stop)
	if stop > t.size {
		write = vfs.BlockEnd(stop + min(zeroAhead(stop), max(0, limit-stop)))
		t.zeros = write
	}
	if at != t.end {
		t.begun = t.begun[:0]
	}
	from := vfs.BlockStart(at)
	f := all.board(int(write - from))
	f.at, f.after = from, nil
	if t.growth.underWay() && write > t.growth.from {
		f.after = t.growth // otherwise its zeros might be written after the batch
	}
	f.buf = append(append(f.buf, t.begun...), t.batch...)
	t.begun = append(t.begun[:0], f.buf[max(0, vfs.BlockStart(stop)-from):]...)
	n := len(f.buf)
	f.buf = f.buf[:write-from]
	clear(f.buf[n:])
	return f
}

// grow returns the growth that should follow the newest batch. It returns nil if there
// are enough zeros, if a growth is in progress, or if the segment is full.
func (t *tail) grow(limit int64) *growth {
	ahead, from := zeroAhead(t.end), vfs.BlockEnd(t.size)
	if from-t.end >= ahead/2 || from >= limit || t.growth.underWay() {
		return nil
	}
	t.growth = &growth{from: from, to: vfs.BlockEnd(min(from+ahead, limit)), done: make(chan struct{})}
	t.size = t.growth.to
	return t.growth
}

// close closes the file once no goroutine writes to it.
func (t *tail) close() error {
	if t == nil {
		return nil
	}
	_ = t.growth.await() // the store's health has the error
	return t.w.Close()
}
