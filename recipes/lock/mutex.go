package lock

import (
	"context"

	"github.com/zkgo/zkgo/recipes"
)

// Mutex is a lock that one at a time can hold: those who acquire it get it in the
// order in which they came. It is what Curator calls InterProcessMutex, and its
// znodes are the same. All methods are safe for concurrent use: goroutines of one
// process exclude each other as processes do.
//
// It is reentrant for an [Owner].
type Mutex struct {
	line   line
	owners owners
}

// NewMutex returns the mutex at path, which is a directory for its znodes. It
// need not exist.
func NewMutex(conn recipes.Conn, path string, opts ...Option) *Mutex {
	cfg := newConfig(opts)
	return &Mutex{line: line{conn: conn, dir: path, infixes: infixes{exclusive: cfg.layout.mutex}, cfg: cfg}}
}

// Acquire waits until the lock is held, or ctx ends; no lock is held then, and
// after at most a second it returns ctx's cause. A connection that breaks
// meanwhile is waited for, its place is kept; if the session ends, it begins anew
// at the end of the line. Errors of another kind are the server's refusals, for
// instance [client.ErrNoAuth], and [client.ErrClosed].
//
// An owner that holds the lock already gets it at once, again.
func (m *Mutex) Acquire(ctx context.Context) (*Lease, error) { return m.acquire(ctx, false) }

// TryAcquire is Acquire without waiting for others: [ErrNotAcquired] if somebody
// holds the lock or waits for it. It waits for the server.
func (m *Mutex) TryAcquire(ctx context.Context) (*Lease, error) { return m.acquire(ctx, true) }

func (m *Mutex) acquire(ctx context.Context, try bool) (*Lease, error) {
	return m.owners.acquire(ctx, func() (*grant, error) { return m.line.acquire(ctx, wish{kind: exclusive, rank: first, try: try}) })
}

// Participants returns who holds the lock, first, and who waits for it, in order.
func (m *Mutex) Participants(ctx context.Context) ([]Participant, error) {
	return m.line.participants(ctx, 0)
}

// Holder returns who holds the lock, or is about to; false if nobody does.
func (m *Mutex) Holder(ctx context.Context) (Participant, bool, error) {
	list, err := m.line.participants(ctx, 1)
	if err != nil || len(list) == 0 {
		return Participant{}, false, err
	}
	return list[0], true, nil
}
