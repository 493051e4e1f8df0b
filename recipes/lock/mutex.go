package lock

import (
	"context"

	"github.com/zkgo/zkgo/recipes"
)

// Mutex is a lock that one client at a time can hold. Clients get it in the order of their
// requests. Curator calls it InterProcessMutex and uses the same znodes. All methods are
// safe for concurrent use: goroutines of one process exclude each other just like processes.
//
// A Mutex is reentrant for an [Owner].
type Mutex struct {
	line   line
	owners owners
}

// NewMutex returns the mutex at path, which is a directory for its znodes. The
// directory need not exist.
func NewMutex(conn recipes.Conn, path string, opts ...Option) *Mutex {
	cfg := newConfig(opts)
	return &Mutex{line: line{conn: conn, dir: path, infixes: infixes{exclusive: cfg.layout.mutex}, cfg: cfg}}
}

// Acquire waits until the lock is held or ctx ends. If ctx ends, no lock is held, and
// Acquire returns ctx's cause after at most a second. If the connection breaks, Acquire
// waits for the next one and keeps its place in line. If the session ends, it starts again
// at the end of the line. It returns other errors, e.g. [client.ErrNoAuth] or
// [client.ErrClosed].
//
// An owner that already holds the lock gets it again immediately.
func (m *Mutex) Acquire(ctx context.Context) (*Lease, error) { return m.acquire(ctx, false) }

// TryAcquire is Acquire without waiting for other clients. It fails with
// [ErrNotAcquired] if another client holds the lock or waits for it. It does wait for
// the server.
func (m *Mutex) TryAcquire(ctx context.Context) (*Lease, error) { return m.acquire(ctx, true) }

func (m *Mutex) acquire(ctx context.Context, try bool) (*Lease, error) {
	return m.owners.acquire(ctx, func() (*grant, error) { return m.line.acquire(ctx, wish{kind: exclusive, rank: first, try: try}) })
}

// Participants returns the holder of the lock, followed by the waiters in order.
func (m *Mutex) Participants(ctx context.Context) ([]Participant, error) {
	return m.line.participants(ctx, 0)
}

// Holder returns the client that holds the lock or is about to, or false if no client does.
func (m *Mutex) Holder(ctx context.Context) (Participant, bool, error) {
	list, err := m.line.participants(ctx, 1)
	if err != nil || len(list) == 0 {
		return Participant{}, false, err
	}
	return list[0], true, nil
}
