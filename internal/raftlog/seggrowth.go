package raftlog

import (
	"fmt"
	"sync"

	"github.com/zkgo/zkgo/internal/vfs"
)

// A segment grows by zeros: overwriting blocks that exist takes the disk half as long as
// growing a file. The first stretch is short, for stores that hold next to nothing.
const (
	zeroAheadMin = 64 << 10
	zeroAheadMax = 1 << 20
)

// zeroAhead is how many zeros there should be behind the end of a segment.
func zeroAhead(end int64) int64 { return min(max(end, zeroAheadMin), zeroAheadMax) }

// growth is a stretch of zeros that is written behind the end of a segment before a
// batch needs the room: behind another batch, when that has arrived and nobody waits for
// the disk. A stretch of 1 MiB takes as long as several batches.
type growth struct {
	from, to int64
	done     chan struct{} // closed when they are on disk, or err says why they are not
	err      error
}

// zeros are zeroAheadMax of them, to be read only.
var zeros = sync.OnceValue(func() []byte { return vfs.Blocks(zeroAheadMax)[:zeroAheadMax] })

// start begins to write, on its own and counted among the calls that run. before is what
// became of the batch before: if that failed nothing more is written.
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

// write writes the zeros and makes them, and the new size of the file, durable. It always
// gives up its processor, as vfs.WriteDurably need not: others go on meanwhile.
func (g *growth) write(w vfs.File) error {
	if _, err := w.WriteAt(zeros()[:g.to-g.from], g.from); err != nil {
		return err
	}
	return w.Sync()
}

// end ends the growth.
func (g *growth) end(err error) {
	g.err = err
	close(g.done)
}

// underWay says whether there are zeros that are not on disk yet.
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

// await returns when the zeros are on disk, or why they are not.
func (g *growth) await() error {
	if g == nil {
		return nil
	}
	<-g.done
	return g.err
}
