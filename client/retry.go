package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// RetryPolicy decides whether and when an operation that lost its connection is tried again.
// Its arguments are the number of failed tries, 1 or more, and the time since the first try
// began. It must be safe for concurrent use. Before the next try the operation also waits
// for a connection, as every operation does. The operation's context limits the total time.
//
// The Client only repeats operations that can safely run twice: reads, sync, watches,
// [Protected] creates (which look for the znode that they may have created), and writes
// marked [Idempotent]. It also repeats operations that the server refused because of
// overload ([ErrThrottledOp]), since they had no effect. It sends a request that never left
// this machine on the next connection without asking the policy.
type RetryPolicy interface {
	Retry(failed int, elapsed time.Duration) (wait time.Duration, again bool)
}

// RetryFunc is a function that implements [RetryPolicy].
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

// RetryExponential tries at most tries times; 0 means no limit. The wait is random,
// up to base after the first failure. This bound doubles after every failure, up to
// longest.
func RetryExponential(base, longest time.Duration, tries int) RetryPolicy {
	return RetryFunc(func(failed int, _ time.Duration) (time.Duration, bool) {
		return jitter(base, longest, failed), tries == 0 || failed < tries
	})
}

// RetryN tries at most tries times, with the same wait between tries.
func RetryN(tries int, wait time.Duration) RetryPolicy {
	return RetryFunc(func(failed int, _ time.Duration) (time.Duration, bool) { return wait, failed < tries })
}

// RetryForever tries until the context ends, with the same wait between tries.
func RetryForever(wait time.Duration) RetryPolicy {
	return RetryFunc(func(int, time.Duration) (time.Duration, bool) { return wait, true })
}

// RetryUntilElapsed tries until limit has passed since the first try, with the same
// wait between tries.
func RetryUntilElapsed(limit, wait time.Duration) RetryPolicy {
	return RetryFunc(func(_ int, elapsed time.Duration) (time.Duration, bool) { return wait, elapsed+wait < limit })
}

// jitter returns a random time up to base doubled failed−1 times, but at most
// longest.
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

// retrying tracks the tries of one operation under its policy.
type retrying struct {
	policy RetryPolicy
	began  time.Time
	failed int
}

// again asks the policy whether to try again, and waits. It reports false if there is
// no other try or ctx ends.
func (r *retrying) again(ctx context.Context) bool {
	r.failed++
	wait, ok := r.policy.Retry(r.failed, time.Since(r.began))
	return ok && pause(ctx, wait)
}

// pause waits for d. It reports false if ctx ends first.
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

// repeatable reports whether an operation that failed with err may be tried again.
func repeatable(err error, safe bool) bool {
	return errors.Is(err, ErrThrottledOp) || safe && errors.Is(err, ErrConnectionLoss)
}

// backoff is a wait that grows with every failure.
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
