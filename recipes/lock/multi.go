package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Held is the interface that all leases implement: see [Lease].
type Held interface {
	Done() <-chan struct{}
	Err() error
	Deadline() time.Time
	Release(ctx context.Context) error
}

// Locker is a lock that can be a part of a [Multi] or a [Quorum]: a *Mutex, a
// *SemaphoreMutex, a *Semaphore, a *LeaseLock, a *Simple, a *Multi, a *Quorum, or one
// side of an *RWMutex.
type Locker interface {
	acquireHeld(ctx context.Context, try bool) (Held, error)
}

func held(l *Lease, err error) (Held, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (m *Mutex) acquireHeld(ctx context.Context, try bool) (Held, error) {
	return held(m.acquire(ctx, try))
}

func (s *Semaphore) acquireHeld(ctx context.Context, try bool) (Held, error) {
	return held(one(s.acquire(ctx, 1, try)))
}

func (s *Simple) acquireHeld(ctx context.Context, try bool) (Held, error) {
	return held(s.acquire(ctx, try))
}

// side is one side of a read-write lock.
type side func(ctx context.Context, try bool) (*Lease, error)

func (s side) acquireHeld(ctx context.Context, try bool) (Held, error) { return held(s(ctx, try)) }

// Reader returns the read side as a part of a [Multi] or a [Quorum].
func (m *RWMutex) Reader() Locker { return side(m.read) }

// Writer returns the write side as a part of a [Multi] or a [Quorum].
func (m *RWMutex) Writer() Locker { return side(m.write) }

// Multi combines several locks, possibly on several ensembles, that are held together or
// not at all. Curator calls it InterProcessMultiLock.
//
// We acquire the locks one after another, so two Multis that share locks must list them in
// the same order. Otherwise they may deadlock.
type Multi struct{ locks []Locker }

// NewMulti combines one or more locks.
func NewMulti(locks ...Locker) *Multi { return &Multi{locks} }

// Acquire waits until all locks are held. If one fails, or ctx ends, Acquire releases
// the locks that it already holds.
func (m *Multi) Acquire(ctx context.Context) (*Bundle, error) { return m.acquire(ctx, false) }

// TryAcquire is Acquire without waiting for other clients. It fails with
// [ErrNotAcquired] if another client is first.
func (m *Multi) TryAcquire(ctx context.Context) (*Bundle, error) { return m.acquire(ctx, true) }

func (m *Multi) acquireHeld(ctx context.Context, try bool) (Held, error) {
	b, err := m.acquire(ctx, try)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (m *Multi) acquire(ctx context.Context, try bool) (*Bundle, error) {
	if len(m.locks) == 0 {
		return nil, errors.New("a Multi of no locks")
	}
	for {
		b, err := m.all(ctx, try)
		if err != nil || b.Err() == nil {
			return b, err
		}
		// A lock was lost while the later ones were acquired.
		ended, cancel := briefly(ctx)
		_ = b.Release(ended)
		cancel()
	}
}

// all acquires the locks once.
func (m *Multi) all(ctx context.Context, try bool) (*Bundle, error) {
	var got []Held
	for _, l := range m.locks {
		h, err := l.acquireHeld(ctx, try)
		if err != nil {
			ended, cancel := briefly(ctx)
			defer cancel()
			_ = releaseAll(ended, got) // if this fails, it continues in the background
			return nil, err
		}
		got = append(got, h)
	}
	return newBundle(got, len(got)), nil
}

// releaseAll releases the leases in reverse order.
func releaseAll(ctx context.Context, list []Held) error {
	var errs []error
	for i := len(list) - 1; i >= 0; i-- {
		if err := list[i].Release(ctx); err != nil && !errors.Is(err, ErrLost) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Bundle is the lease of a [Multi] or a [Quorum]. It is held while enough of its parts are:
// all parts of a Multi, a majority of a Quorum. The methods correspond to the methods of a
// [Lease] and are safe for concurrent use. Each part has its own fencing token.
type Bundle struct {
	parts  []Held
	enough int
	stop   chan struct{}
	once   sync.Once

	mu   sync.Mutex
	done chan struct{}
	err  error
}

// newBundle monitors leases. The bundle is held while at least enough leases are.
func newBundle(parts []Held, enough int) *Bundle {
	b := &Bundle{parts: parts, enough: enough, stop: make(chan struct{}), done: make(chan struct{})}
	for _, p := range parts {
		go func() {
			select {
			case <-p.Done():
				_ = b.Err()
			case <-b.stop:
			}
		}()
	}
	return b
}

// Done returns a channel that is closed when too few parts are held.
func (b *Bundle) Done() <-chan struct{} { return b.done }

// Err returns nil while enough parts are held, and otherwise the errors of the lost parts.
func (b *Bundle) Err() error {
	var lost []error
	for _, p := range b.parts {
		if err := p.Err(); err != nil {
			lost = append(lost, err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && len(b.parts)-len(lost) < b.enough {
		b.end(errors.Join(append(lost, fmt.Errorf("%w: %d of %d parts are needed", ErrLost, b.enough, len(b.parts)))...))
	}
	return b.err
}

// end closes done; b.mu is held.
func (b *Bundle) end(err error) {
	b.err = err
	close(b.done)
}

// Deadline returns the time at which too few parts will be held unless servers reply
// before.
func (b *Bundle) Deadline() time.Time {
	deadlines := make([]time.Time, 0, len(b.parts))
	for _, p := range b.parts {
		if p.Err() == nil {
			deadlines = append(deadlines, p.Deadline())
		}
	}
	return nthLatest(deadlines, b.enough)
}

// Parts returns the leases of the bundle.
func (b *Bundle) Parts() []Held { return b.parts }

// Release releases all parts. It returns nil if enough parts were held until then and all
// releases succeeded.
func (b *Bundle) Release(ctx context.Context) error {
	err := ErrReleased
	b.once.Do(func() {
		lost := b.Err()
		b.mu.Lock()
		if b.err == nil {
			b.end(ErrReleased)
		}
		b.mu.Unlock()
		close(b.stop)
		err = errors.Join(lost, releaseAll(ctx, b.parts))
	})
	return err
}
