package raftlog

import (
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/hashicorp/raft-wal/types"

	"github.com/zkgo/zkgo/internal/vfs"
)

// tail is the end of the last segment, to which batches are written.
//
// They are written in whole blocks and past the page cache: through it a second
// write would wait for the first, and a single one takes longer. Where nothing is in
// the air a batch follows the one before directly, and what of the block is there
// already is written once more. Beside another write it begins a block of its own:
// which of two writes to the same block the disk does last is not known.
type tail struct {
	w     vfs.File // for writing only
	path  string
	end   int64  // of the newest batch
	size  int64  // of the file, once growth is done; zeros between end and size
	begun []byte // what of the block in which end lies is before end
	zeros int64  // how far a write in the air goes beyond its batch
	batch []byte // the newest

	growth *growth // the newest, perhaps under way; nil: there was none
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

// write writes the batch of entries, and returns where it lies and its header, once
// it has landed, or with launch as soon as it is in the air. The segment is full
// from limit on: who goes beyond has to land.
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

// place says where the next batch goes, and from which entry on it may come to lie
// behind something that is missing.
func (t *tail) place(all *flights, first uint64) (at int64, open uint64) {
	if at = vfs.BlockEnd(t.end); t.zeros > at {
		_ = all.settle() // or the zeros might be written later than the batch; after an error nothing counts
	}
	if open = all.pending.Load(); open != 0 {
		return at, open
	}
	t.zeros = 0
	return t.end, first
}

// fill makes a flight of t.batch, which is to lie at at.
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
		f.after = t.growth // or its zeros might be written later than the batch
	}
	f.buf = append(append(f.buf, t.begun...), t.batch...)
	t.begun = append(t.begun[:0], f.buf[max(0, vfs.BlockStart(stop)-from):]...)
	n := len(f.buf)
	f.buf = f.buf[:write-from]
	clear(f.buf[n:])
	return f
}

// grow returns the growth that is to follow the batch that was placed last: nil when
// there are zeros enough, or more under way, or the segment is full.
func (t *tail) grow(limit int64) *growth {
	ahead, from := zeroAhead(t.end), vfs.BlockEnd(t.size)
	if from-t.end >= ahead/2 || from >= limit || t.growth.underWay() {
		return nil
	}
	t.growth = &growth{from: from, to: vfs.BlockEnd(min(from+ahead, limit)), done: make(chan struct{})}
	t.size = t.growth.to
	return t.growth
}

// close closes the file, once nobody writes to it.
func (t *tail) close() error {
	if t == nil {
		return nil
	}
	_ = t.growth.await() // the health of the store knows what went wrong
	return t.w.Close()
}
