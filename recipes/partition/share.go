package partition

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes/lock"
)

// releasing is how long the release of a share waits for the server.
const releasing = 5 * time.Second

// Share is the set of items of one member until the member's context ends.
type Share struct {
	// Items are sorted.
	Items []string
	// Leases are the leases of the items' locks. Use their tokens to fence off earlier holders
	// of an item, their Err to check the clock, and their Multi to write only while the
	// item is held. Run releases them.
	Leases map[string]*lock.Lease
}

// round handles one share: it acquires the locks, calls work, and releases the locks. It
// returns the reason why the share has ended, which is never nil.
func (p *Partitioner) round(ctx context.Context, members []string, changed <-chan struct{}, work func(context.Context, Share) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go endWith(ctx, changed, func() { cancel(errChanged) })

	share, held, err := p.acquire(ctx, members)
	if err != nil {
		return err
	}
	if held != nil {
		go endWith(ctx, held.Done(), func() { cancel(held.Err()) })
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasing)
			defer cancel()
			_ = held.Release(ctx) // if this fails, it continues in the background
		}()
	}
	p.enter(Acquired, ctx.Done())
	defer p.enter(Allocating, nil)
	if err := work(ctx, share); err != nil && ctx.Err() == nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// endWith calls do when something is closed, unless ctx ends first.
func endWith(ctx context.Context, something <-chan struct{}, do func()) {
	select {
	case <-something:
		do()
	case <-ctx.Done():
	}
}

// acquire acquires the locks of this member's share. held is nil if the share is
// empty.
func (p *Partitioner) acquire(ctx context.Context, members []string) (share Share, held *lock.Bundle, err error) {
	share = Share{Items: sorted(p.shares(p.id, slices.Clone(members), slices.Clone(p.set))), Leases: map[string]*lock.Lease{}}
	locks := make([]lock.Locker, 0, len(share.Items))
	for _, item := range share.Items {
		if _, known := slices.BinarySearch(p.set, item); !known {
			return share, nil, fmt.Errorf("%w: %q is not in the set", ErrBadItem, item)
		}
		locks = append(locks, lock.NewMutex(p.conn, recipe.Join(p.dir, "locks/"+item),
			lock.WithKazooLayout(), lock.WithData([]byte(p.id)), lock.WithACL(p.acl...), lock.WithLossPolicy(p.policy)))
	}
	if len(locks) == 0 {
		return share, nil, nil
	}
	held, err = lock.NewMulti(locks...).Acquire(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return share, nil, err
	}
	for i, part := range held.Parts() {
		share.Leases[share.Items[i]], _ = part.(*lock.Lease) // every Held of a Mutex is a *Lease
	}
	return share, held, nil
}
