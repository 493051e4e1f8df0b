package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// RetryPolicy says whether and when an operation that lost its connection is
// tried again. It is asked with the number of tries that failed, 1 or more, and
// the time since the first began; it must be safe for concurrent use. Before the
// next try the operation also waits for a connection, as every operation does,
// and its context ends all of it.
//
// Only what can be done twice without harm is repeated: reads, sync, watches,
// [Protected] creates (which look for what they may have created), and writes
// marked [Idempotent]. What a server refused because it had too much to do
// ([ErrThrottledOp]) was not done and is repeated as well. What never left this
// machine is sent on the next connection without asking the policy.
type RetryPolicy interface {
	Retry(failed int, elapsed time.Duration) (wait time.Duration, again bool)
}

// RetryFunc is a function as a [RetryPolicy].
type RetryFunc func(failed int, elapsed time.Duration) (wait time.Duration, again bool)

// Retry calls f.
func (f RetryFunc) Retry(failed int, elapsed time.Duration) (time.Duration, bool) {
	return f(failed, elapsed)
}

// NoRetry never tries again.
func NoRetry() RetryPolicy {
	return RetryFunc(func(int, time.Duration) (time.Duration, bool) { return 0, false })
}

// DefaultRetry tries five times at most, with waits of at most 50, 100, 200 and
// 400 milliseconds.
func DefaultRetry() RetryPolicy { return RetryExponential(50*time.Millisecond, time.Second, 5) }

// RetryExponential tries at most tries times; 0 is without limit. It waits for a
// random time up to base, which doubles after every failure, and is at most
// longest.
func RetryExponential(base, longest time.Duration, tries int) RetryPolicy {
	return RetryFunc(func(failed int, _ time.Duration) (time.Duration, bool) {
		return jitter(base, longest, failed), tries == 0 || failed < tries
	})
}

// RetryN tries at most tries times, with the same wait between.
func RetryN(tries int, wait time.Duration) RetryPolicy {
	return RetryFunc(func(failed int, _ time.Duration) (time.Duration, bool) { return wait, failed < tries })
}

// RetryForever tries until the context ends, with the same wait between.
func RetryForever(wait time.Duration) RetryPolicy {
	return RetryFunc(func(int, time.Duration) (time.Duration, bool) { return wait, true })
}

// RetryUntilElapsed tries until a time has passed since the first try, with the
// same wait between.
func RetryUntilElapsed(limit, wait time.Duration) RetryPolicy {
	return RetryFunc(func(_ int, elapsed time.Duration) (time.Duration, bool) { return wait, elapsed+wait < limit })
}

// jitter returns a random time up to base doubled failed−1 times.
func jitter(base, longest time.Duration, failed int) time.Duration {
	d := longest
	if shift := failed - 1; shift < 32 && base<<shift > 0 && base<<shift < longest {
		d = base << shift
	}
	if d <= 0 {
		return 0
	}
	return rand.N(d) + 1
}

// retrying is one operation's way through its policy.
type retrying struct {
	policy RetryPolicy
	began  time.Time
	failed int
}

// again reports, after the wait, whether to try again; before means that the
// time began when this was made.
func (r *retrying) again(ctx context.Context) bool {
	r.failed++
	wait, ok := r.policy.Retry(r.failed, time.Since(r.began))
	return ok && pause(ctx, wait)
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// repeatable reports whether an operation that failed so may be tried again.
func repeatable(err error, safe bool) bool {
	return errors.Is(err, ErrThrottledOp) || safe && errors.Is(err, ErrConnectionLoss)
}

// backoff is a wait that grows.
type backoff struct {
	base, longest time.Duration
	failed        int
}

func newBackoff(base, longest time.Duration) *backoff { return &backoff{base: base, longest: longest} }

func (b *backoff) sleep(ctx context.Context) {
	b.failed++
	pause(ctx, jitter(b.base, b.longest, b.failed))
}

func (b *backoff) reset() { b.failed = 0 }
