package counter

import (
	"context"
	"iter"

	"github.com/zkgo/zkgo/recipes"
)

// SharedCount is a [SharedValue] that is a number of four bytes. It is Curator's
// SharedCount. You can use it for the size of a semaphore of package lock.
type SharedCount struct{ value *SharedValue }

// NewSharedCount returns the count at path, which is seed until a client has set it.
func NewSharedCount(conn recipes.Conn, path string, seed int32, opts ...Option) *SharedCount {
	return &SharedCount{NewSharedValue(conn, path, encode(seed), opts...)}
}

// Get returns the count, like [SharedValue.Get].
func (c *SharedCount) Get(ctx context.Context) (Versioned[int32], error) {
	return c.number(c.value.Get(ctx))
}

// Set replaces the count unconditionally.
func (c *SharedCount) Set(ctx context.Context, n int32) error { return c.value.Set(ctx, encode(n)) }

// TrySet replaces the count if it has not changed since old was read, and otherwise reports
// false. It returns the current count in both cases.
func (c *SharedCount) TrySet(ctx context.Context, old Versioned[int32], n int32) (Versioned[int32], bool, error) {
	now, ok, err := c.value.TrySet(ctx, Versioned[[]byte]{encode(old.Value), old.Version, old.Zxid}, encode(n))
	count, err := c.number(now, err)
	return count, ok, err
}

// Changes yields the current count and then every change, like [SharedValue.Changes].
func (c *SharedCount) Changes(ctx context.Context) iter.Seq2[Versioned[int32], error] {
	return func(yield func(Versioned[int32], error) bool) {
		for now, err := range c.value.Changes(ctx) {
			if !yield(c.number(now, err)) {
				return
			}
		}
	}
}

func (c *SharedCount) number(now Versioned[[]byte], err error) (Versioned[int32], error) {
	if err != nil {
		return Versioned[int32]{}, err
	}
	n, err := decode[int32](now.Value)
	if err != nil {
		err = c.value.cell.failure(err)
	}
	return Versioned[int32]{n, now.Version, now.Zxid}, err
}
