package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zkgo/zkgo/internal/recipe"
)

// Quorum combines several locks, each on its own ensemble. It is held while a majority of
// the locks is, so it survives the loss of a minority of the ensembles. We follow the steps
// of Redlock: try all locks at the same time, each with a timeout. If a majority succeeds
// and its leases have not run out in the meantime, the lock is held. If not, release all
// locks and try again after a random pause.
//
// You should prefer one ensemble of several servers: it is safer and simpler, also survives
// the loss of a minority, and is fair. Quorum is for ensembles in locations that fail
// independently. It is not fair.
type Quorum struct {
	locks   []Locker
	timeout time.Duration
	pause   time.Duration
}

// NewQuorum returns a lock made of the given locks. If an ensemble doesn't reply within
// timeout, its lock counts as refused. After a failed attempt, Acquire waits for at least
// pause, and at most twice that, before it tries again.
func NewQuorum(timeout, pause time.Duration, locks ...Locker) *Quorum {
	return &Quorum{locks: locks, timeout: timeout, pause: max(pause, time.Millisecond)}
}

// Acquire tries until a majority is held or ctx ends.
func (q *Quorum) Acquire(ctx context.Context) (*Bundle, error) {
	for {
		b, err := q.TryAcquire(ctx)
		if err == nil || ctx.Err() != nil {
			return b, err
		}
		if ended := recipe.Sleep(ctx, q.pause+rand.N(q.pause+1)); ended != nil {
			return nil, fmt.Errorf("%w; the last try: %w", ended, err)
		}
	}
}

// TryAcquire tries once. Without a majority it fails with [ErrNotAcquired], joined
// with the errors of the parts.
func (q *Quorum) TryAcquire(ctx context.Context) (*Bundle, error) {
	type answer struct {
		h   Held
		err error
	}
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	answers := make(chan answer, len(q.locks))
	for _, l := range q.locks {
		go func() {
			h, err := l.acquireHeld(ctx, true)
			answers <- answer{h, err}
		}()
	}
	var got []Held
	errs := []error{ErrNotAcquired}
	for range q.locks {
		if a := <-answers; a.err == nil {
			got = append(got, a.h)
		} else {
			errs = append(errs, a.err)
		}
	}
	b := newBundle(got, len(q.locks)/2+1)
	if err := b.Err(); err != nil || len(got) < b.enough {
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.timeout)
		defer cancel()
		_ = b.Release(release) // if this fails, it continues in the background
		return nil, errors.Join(append(errs, err)...)
	}
	return b, nil
}

func (q *Quorum) acquireHeld(ctx context.Context, try bool) (Held, error) {
	b, err := q.TryAcquire(ctx)
	if err != nil && !try {
		b, err = q.Acquire(ctx)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// nthLatest returns the nth latest of the deadlines, i.e. the time until which n deadlines
// have not passed, or the zero Time if there are fewer than n.
func nthLatest(list []time.Time, n int) time.Time {
	if len(list) < n || n < 1 {
		return time.Time{}
	}
	slices.SortFunc(list, func(a, b time.Time) int { return b.Compare(a) })
	return list[n-1]
}
