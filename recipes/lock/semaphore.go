package lock

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// Semaphore is a lock with a limited number of leases. Clients get leases in the order of
// their requests. Curator calls it InterProcessSemaphoreV2 and uses the same znodes: a mutex
// below "locks" and a line below "leases", which only the holder of the mutex may join. All
// methods are safe for concurrent use. A Semaphore is not reentrant.
type Semaphore struct {
	inner line // the mutex
	line  line // the leases
	limit func(ctx context.Context, s recipes.Session) (int, recipes.Watch, error)
}

// NewSemaphore returns the semaphore at path with n leases. All clients must use the same
// n. We can't check that.
func NewSemaphore(conn recipes.Conn, path string, n int, opts ...Option) *Semaphore {
	s := newSemaphore(conn, path, opts)
	s.limit = func(context.Context, recipes.Session) (int, recipes.Watch, error) { return n, nil, nil }
	return s
}

// NewSharedSemaphore returns the semaphore at path. The znode at count contains the number
// of leases: four bytes in big-endian order, as Curator's SharedCount writes them. When it
// changes, waiters use the new number, but we don't revoke leases that are held.
func NewSharedSemaphore(conn recipes.Conn, path, count string, opts ...Option) *Semaphore {
	s := newSemaphore(conn, path, opts)
	s.limit = func(ctx context.Context, s recipes.Session) (int, recipes.Watch, error) {
		data, _, w, err := s.GetW(ctx, count)
		if err != nil {
			return 0, nil, fmt.Errorf("the number of leases: %w", err)
		}
		if len(data) != 4 {
			recipe.Drop(ctx, w)
			return 0, nil, fmt.Errorf("the number of leases at %s: %d bytes instead of 4", count, len(data))
		}
		return int(int32(binary.BigEndian.Uint32(data))), w, nil //nolint:gosec // two's complement, as Java writes it
	}
	return s
}

func newSemaphore(conn recipes.Conn, path string, opts []Option) *Semaphore {
	cfg := newConfig(opts)
	mutex := cfg
	mutex.data = nil
	return &Semaphore{
		inner: line{conn: conn, dir: recipe.Join(path, "locks"), infixes: infixes{exclusive: curatorLayout.mutex}, cfg: mutex},
		line:  line{conn: conn, dir: recipe.Join(path, "leases"), infixes: infixes{leases: curatorLayout.leases}, cfg: cfg},
	}
}

// Acquire waits for one lease, like [Mutex.Acquire].
func (s *Semaphore) Acquire(ctx context.Context) (*Lease, error) {
	return one(s.acquire(ctx, 1, false))
}

// TryAcquire is Acquire without waiting for other clients. It fails with
// [ErrNotAcquired] if all leases are held or another client is about to get one.
func (s *Semaphore) TryAcquire(ctx context.Context) (*Lease, error) {
	return one(s.acquire(ctx, 1, true))
}

// AcquireN waits for n leases, and gets all or none. Later clients wait until it has them,
// so it can't happen that two clients want all leases and each holds half.
func (s *Semaphore) AcquireN(ctx context.Context, n int) ([]*Lease, error) {
	return s.acquire(ctx, n, false)
}

func one(list []*Lease, err error) (*Lease, error) {
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

func (s *Semaphore) acquire(ctx context.Context, n int, try bool) ([]*Lease, error) {
	if n < 1 {
		return nil, fmt.Errorf("semaphore %s: %d leases wanted", s.line.dir, n)
	}
	return repeat(ctx, s.line.cfg.retry, s.line.failure, func() ([]*Lease, error) {
		list, err := s.attempt(ctx, n, try)
		if err != nil {
			return nil, s.line.failure(err)
		}
		return list, nil
	})
}

// attempt gets n leases while it holds the mutex.
func (s *Semaphore) attempt(ctx context.Context, n int, try bool) (list []*Lease, err error) {
	turn, err := s.inner.acquire(ctx, wish{kind: exclusive, rank: first, try: try})
	if err != nil {
		return nil, err
	}
	defer func() {
		// We hold the leases even if we can't delete the mutex immediately.
		tidy(ctx, turn)
		if err != nil {
			for _, l := range list {
				tidy(ctx, l.g)
			}
			list = nil
		}
	}()
	for range n {
		g, err := s.take(ctx, turn, try)
		if err != nil {
			return list, err
		}
		list = append(list, &Lease{g: g})
	}
	return list, nil
}

// take gets one lease while the mutex turn is held.
func (s *Semaphore) take(ctx context.Context, turn *grant, try bool) (*grant, error) {
	c, err := enter(ctx, s.line.conn, s.line.dir, s.line.infixes[leases], &s.line.cfg)
	if err != nil {
		return nil, err
	}
	g, err := s.wait(ctx, c, turn, try)
	if err != nil {
		// We need this even if we lost the mutex: the session may continue, and so may this
		// place.
		c.remove()
	}
	return g, err
}

func (s *Semaphore) wait(ctx context.Context, c *contender, turn *grant, try bool) (*grant, error) {
	for {
		limit, change, err := s.limit(ctx, c.session)
		if err != nil {
			return nil, err
		}
		names, _, w, err := c.session.ChildrenW(ctx, s.line.dir)
		if err != nil {
			dropAll(ctx, change)
			return nil, err
		}
		places, err := s.line.places(ctx, c.session, names)
		self := slices.IndexFunc(places, func(e entry) bool { return e.name == c.name })
		switch {
		case err != nil:
		case self < 0:
			err = errVanished
		case self < limit:
			dropAll(ctx, change, w)
			return grantTo(ctx, c, &s.line.cfg)
		case try:
			err = ErrNotAcquired
		default:
			err = awaitAny(ctx, turn, change, w)
		}
		dropAll(ctx, change, w)
		if err != nil {
			return nil, err
		}
	}
}

// awaitAny waits for one of two watches. The first one may be nil.
func awaitAny(ctx context.Context, turn *grant, change, w recipes.Watch) error {
	var changes <-chan client.Event
	if change != nil {
		changes = change.Events()
	}
	var ok bool
	select {
	case _, ok = <-w.Events():
	case _, ok = <-changes:
	case <-turn.done:
		return errVanished // another client may have the mutex: start again
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !ok {
		return client.ErrSessionExpired
	}
	return nil
}

// dropAll removes watches. Some may be nil or have fired.
func dropAll(ctx context.Context, watches ...recipes.Watch) {
	for _, w := range watches {
		if w != nil {
			recipe.Drop(ctx, w)
		}
	}
}

// Participants returns the holders of leases in the order in which they got them,
// followed by the next waiter, if any. It doesn't include the waiters after that one.
func (s *Semaphore) Participants(ctx context.Context) ([]Participant, error) {
	return s.line.participants(ctx, 0)
}

// SemaphoreMutex is a mutex that is never reentrant, i.e. a semaphore with one lease.
// Curator calls it InterProcessSemaphoreMutex and uses the same znodes.
type SemaphoreMutex struct{ *Semaphore }

// NewSemaphoreMutex returns the mutex at path.
func NewSemaphoreMutex(conn recipes.Conn, path string, opts ...Option) *SemaphoreMutex {
	return &SemaphoreMutex{NewSemaphore(conn, path, 1, opts...)}
}
