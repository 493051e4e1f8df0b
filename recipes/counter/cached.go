package counter

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/client"
)

// Cached hands out numbers that it takes from a [Long] in blocks, so that few of
// them need a request. It is Curator's CachedAtomicLong. Each number is handed out
// once, by whichever process, and in no order between processes; numbers of a
// block that is not used up, or whose taking got no answer, are left out. All
// methods are safe for concurrent use.
type Cached struct {
	number *Long
	block  int64
	turn   chan struct{} // holds one value while nobody takes a number
	last   int64         // handed out
	left   int64         // of the block
}

// NewCached returns a Cached that takes blocks of a size of at least 1.
func NewCached(number *Long, block int64) (*Cached, error) {
	if block < 1 {
		return nil, fmt.Errorf("counter %s: a block of %d numbers", number.cell.path, block)
	}
	c := &Cached{number: number, block: block, turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	return c, nil
}

// errBusy says that others were faster as often as the Long's WithRetry allows.
var errBusy = errors.New("no block of numbers: others were faster")

// Next returns the next number: one more than the last of this block, as adding 1
// to the Long would return as Post. A lost connection or a session that ends is waited
// out; a block of which it is not known whether it was taken is left out. It is an
// error if others were faster as often as the Long's WithRetry allows.
func (c *Cached) Next(ctx context.Context) (int64, error) {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	defer func() { c.turn <- struct{}{} }()
	for c.left == 0 {
		r, err := c.number.Add(ctx, c.block)
		switch {
		case errors.Is(err, client.ErrUnknownOutcome) && ctx.Err() == nil:
			continue // if it was added, that block is nobody's
		case err != nil:
			return 0, err
		case !r.Succeeded:
			return 0, c.number.cell.failure(errBusy)
		}
		c.last, c.left = r.Pre, c.block
	}
	c.last++
	c.left--
	return c.last, nil
}
