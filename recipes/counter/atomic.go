package counter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
)

// Number is the type that an [Atomic] counts in.
type Number interface{ int32 | int64 }

// Long is Curator's DistributedAtomicLong: eight bytes.
type Long = Atomic[int64]

// Int is Curator's DistributedAtomicInteger: four bytes.
type Int = Atomic[int32]

// Atomic is a number that many clients change concurrently. A missing or empty znode
// is zero. Sums wrap as in Go. All methods are safe for concurrent use.
//
// If the connection or the session is lost, Atomic waits for the next one. If we can't find
// out whether a change was made, the error matches [client.ErrUnknownOutcome]; the change
// was made at most once. If ctx ends, the error is ctx's cause, and also matches
// ErrUnknownOutcome if a change may have been in flight.
type Atomic[T Number] struct {
	cell  cell
	retry client.RetryPolicy
	mutex *lock.Mutex // used when other clients keep winning; may be nil
}

// Option configures a counter or a shared value.
type Option func(*config)

type config struct {
	acl   []client.ACL
	retry client.RetryPolicy
	lock  string
	opts  []lock.Option
}

// WithACL sets the ACL of the znode when it is created.
func WithACL(acl ...client.ACL) Option { return func(c *config) { c.acl = acl } }

// WithRetry sets how often we try a change while other clients are faster. After that, we
// acquire the lock of WithLock, if there is one; otherwise the [Result] reports that the
// change did not succeed. By default, we try until ctx ends, or three times if there is a
// lock.
func WithRetry(p client.RetryPolicy) Option { return func(c *config) { c.retry = p } }

// WithLock sets the directory of a mutex for changes that have used up the attempts of
// WithRetry. Curator calls this promotion. Under the lock, we try a change until ctx ends.
func WithLock(path string, opts ...lock.Option) Option {
	return func(c *config) { c.lock, c.opts = path, opts }
}

// The pause between attempts.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

// NewLong returns the number at path.
func NewLong(conn recipes.Conn, path string, opts ...Option) *Long {
	return newAtomic[int64](conn, path, opts)
}

// NewInt returns the number at path.
func NewInt(conn recipes.Conn, path string, opts ...Option) *Int {
	return newAtomic[int32](conn, path, opts)
}

func newAtomic[T Number](conn recipes.Conn, path string, opts []Option) *Atomic[T] {
	var cfg config
	for _, o := range opts {
		o(&cfg)
	}
	a := &Atomic[T]{cell: cell{conn, path, cfg.acl}, retry: cfg.retry}
	if cfg.lock != "" {
		a.mutex = lock.NewMutex(conn, cfg.lock, cfg.opts...)
		if a.retry == nil {
			a.retry = client.RetryExponential(firstPause, lastPause, 3)
		}
	}
	if a.retry == nil {
		a.retry = client.RetryExponential(firstPause, lastPause, 0)
	}
	return a
}

// Result is the result of a change.
type Result[T Number] struct {
	// Succeeded is true if the change was made.
	Succeeded bool
	// Pre is the number before the change, or the current number if there was no change.
	Pre T
	// Post is the number after the change, if it was made.
	Post T
	// Tries is the number of attempts, with and without the lock.
	Tries int
	// Locked is true if the lock was acquired.
	Locked bool
}

// Get returns the number as it was at some moment during the call.
func (a *Atomic[T]) Get(ctx context.Context) (T, error) {
	now, err := a.cell.read(ctx)
	if err != nil {
		return 0, a.cell.failure(err)
	}
	return a.decode(now.data)
}

// Add adds delta, which may be negative.
func (a *Atomic[T]) Add(ctx context.Context, delta T) (Result[T], error) {
	return a.change(ctx, func(pre T, _ bool) (T, bool) { return pre + delta, true })
}

// Set replaces the number and returns the previous one.
func (a *Atomic[T]) Set(ctx context.Context, n T) (Result[T], error) {
	return a.change(ctx, func(T, bool) (T, bool) { return n, true })
}

// CompareAndSet replaces the number if it equals expected; otherwise the Result's Succeeded
// is false. As in Curator, a missing znode equals no number: see Initialize.
func (a *Atomic[T]) CompareAndSet(ctx context.Context, expected, n T) (Result[T], error) {
	return a.change(ctx, func(pre T, there bool) (T, bool) { return n, there && pre == expected })
}

// Initialize sets the number if there is no znode yet, and reports whether it did.
func (a *Atomic[T]) Initialize(ctx context.Context, n T) (bool, error) {
	r, err := a.change(ctx, func(_ T, there bool) (T, bool) { return n, !there })
	return r.Succeeded, err
}

// change tries first without the lock, then under the lock.
func (a *Atomic[T]) change(ctx context.Context, f func(pre T, there bool) (post T, ok bool)) (Result[T], error) {
	var r Result[T]
	over, err := a.tries(ctx, f, &r, a.retry)
	if err != nil || over || a.mutex == nil {
		return r, err
	}
	l, err := a.mutex.Acquire(ctx)
	if err != nil {
		return r, a.cell.failure(err)
	}
	r.Locked = true
	_, err = a.tries(ctx, f, &r, client.RetryExponential(firstPause, lastPause, 0))
	// If we can't delete the lock's znode immediately, we delete it in the background.
	_ = l.Release(context.WithoutCancel(ctx))
	return r, err
}

// tries repeats try, and reports false if policy gives up first.
func (a *Atomic[T]) tries(ctx context.Context, f func(T, bool) (T, bool), r *Result[T], policy client.RetryPolicy) (bool, error) {
	began := time.Now()
	for failed := 1; ; failed++ {
		over, err := a.try(ctx, f, r)
		if err != nil {
			return false, a.cell.failure(err)
		}
		if over {
			return true, nil
		}
		pause, again := policy.Retry(failed, time.Since(began))
		if !again {
			return false, nil
		}
		if err := recipe.Sleep(ctx, pause); err != nil {
			return false, a.cell.failure(err)
		}
	}
}

func (a *Atomic[T]) try(ctx context.Context, f func(T, bool) (T, bool), r *Result[T]) (over bool, err error) {
	r.Tries++
	now, err := a.cell.read(ctx)
	if err != nil {
		return false, err
	}
	if r.Pre, err = a.decode(now.data); err != nil {
		return false, err
	}
	post, ok := f(r.Pre, now.there)
	if !ok {
		return true, nil
	}
	_, done, err := a.cell.replace(ctx, now, encode(post))
	if done {
		r.Succeeded, r.Post = true, post
	}
	return done, err
}

// errForm means that a znode's data isn't a number.
var errForm = errors.New("not a number of this size")

func (a *Atomic[T]) decode(data []byte) (T, error) {
	n, err := decode[T](data)
	if err != nil {
		return 0, a.cell.failure(err)
	}
	return n, nil
}

func decode[T Number](data []byte) (T, error) {
	var n T
	if len(data) == 0 {
		return 0, nil
	}
	if used, err := binary.Decode(data, binary.BigEndian, &n); err != nil || used != len(data) {
		return 0, fmt.Errorf("%w: %d bytes", errForm, len(data))
	}
	return n, nil
}

func encode[T Number](n T) []byte {
	data, _ := binary.Append(nil, binary.BigEndian, n) // never fails for numbers of a fixed size
	return data
}
