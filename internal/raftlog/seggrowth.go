package raftlog

import (
	"fmt"
	"sync"

	"github.com/zkgo/zkgo/internal/vfs"
)

// A segment grows by zeros: overwriting existing blocks takes the disk half as long as
// growing a file. The first stretch is short, for stores that hold little data.
const (
	zeroAheadMin = 64 << 10
	zeroAheadMax = 1 << 20
)

// zeroAhead returns how many zeros there should be after the end of a segment.
func zeroAhead(end int64) int64 { return min(max(end, zeroAheadMin), zeroAheadMax) }

// growth is a stretch of zeros that is written after the end of a segment before a batch
// needs the space. It starts when a batch has completed and no goroutine waits for the
// disk. A stretch of 1 MiB takes as long as several batches.
type growth struct {
	from, to int64
	done     chan struct{} // closed when the zeros are on disk, or err says why they aren't
	err      error
}

// zeros returns a read-only block of zeroAheadMax zeros.
var zeros = sync.OnceValue(func() []byte { return vfs.Blocks(zeroAheadMax)[:zeroAheadMax] })

// start starts the write on its own goroutine, as a running call of the store. before is
// the result of the previous batch: after an error start writes nothing.
func (g *growth) start(h *health, w vfs.File, path string, before error) {
	if g == nil {
		return
	}
	if before == nil {
		before = h.enter()
	}
	if before != nil {
		g.end(before)
		return
	}
	go func() {
		err := g.write(w)
		if err != nil {
			err = fmt.Errorf("%s: growing it: %w", path, err)
		}
		g.end(err)
		_ = h.leave(err)
	}()
}

// write writes the zeros and makes them and the new file size durable. It always yields
// its processor, which vfs.WriteDurably need not do, so that other goroutines can run.
func (g *growth) write(w vfs.File) error {
	if _, err := w.WriteAt(zeros()[:g.to-g.from], g.from); err != nil {
		return err
	}
	return w.Sync()
}

// end ends the growth with the given result.
func (g *growth) end(err error) {
	g.err = err
	close(g.done)
}

// underWay reports whether there are zeros that aren't on disk yet.
func (g *growth) underWay() bool {
	if g == nil {
		return false
	}
	select {
	case <-g.done:
		return g.err != nil
	default:
		return true
	}
}

// await returns nil when the zeros are on disk, or the error if they aren't.
func (g *growth) await() error {
	if g == nil {
		return nil
	}
	<-g.done
	return g.err
}
