package counter

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/client"
)

// Cached assigns numbers that it allocates from a [Long] in blocks, so that most numbers
// need no request. It is Curator's CachedAtomicLong. Each number is unique among all
// processes, but there is no order between processes. We skip the rest of a block if the
// process ends, and a whole block if its reply was lost. All methods are safe for
// concurrent use.
type Cached struct {
	number *Long
	block  int64
	turn   chan struct{} // contains one value unless a goroutine is in Next
	last   int64         // last number assigned
	left   int64         // numbers left in the block
}

// NewCached returns a Cached that allocates blocks of size block, which must be at least 1.
func NewCached(number *Long, block int64) (*Cached, error) {
	if block < 1 {
		return nil, fmt.Errorf("counter %s: a block of %d numbers", number.cell.path, block)
	}
	c := &Cached{number: number, block: block, turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	return c, nil
}

// errBusy means that other clients were faster as often as the Long's WithRetry
// allows.
var errBusy = errors.New("no block of numbers: others were faster")

// Next returns the next number: one more than the last of this block, the same as Post
// after adding 1 to the Long. If the connection or the session is lost, Next waits for the
// next one. It skips a block if we don't know whether we got it. It fails if other clients
// were faster as often as the Long's WithRetry allows.
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
			continue // if it was added, we skip that block
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
