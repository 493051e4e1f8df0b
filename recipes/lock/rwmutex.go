package lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// RWMutex is a lock that many readers or one writer can hold, in the order in which they
// asked. A reader doesn't overtake a waiting writer, so that no client starves. Curator
// calls it InterProcessReadWriteLock and uses the same znodes. All methods are safe for
// concurrent use.
//
// A reader waits for the nearest writer before it, and a writer waits for the place
// directly before it. When a writer releases the lock, we therefore wake all readers up to
// the next writer, and no other client.
//
// An RWMutex is reentrant for an [Owner], which may also read while it writes. A holder of
// the write lock that wants to continue as a reader acquires the read lock and releases the
// write lock, see [RWMutex.Downgrade]. We refuse the opposite with [ErrUpgrade], because
// two clients that tried it would deadlock.
type RWMutex struct {
	line    line
	readers owners
	writers owners
}

// NewRWMutex returns the read-write lock at path, which is a directory for its
// znodes. The directory need not exist.
func NewRWMutex(conn recipes.Conn, path string, opts ...Option) *RWMutex {
	cfg := newConfig(opts)
	return &RWMutex{line: line{
		conn: conn, dir: path, cfg: cfg,
		infixes: infixes{exclusive: cfg.layout.write, shared: cfg.layout.read},
	}}
}

// Read waits until the read lock is held, like [Mutex.Acquire].
func (m *RWMutex) Read(ctx context.Context) (*Lease, error) { return m.read(ctx, false) }

// TryRead is Read without waiting for writers. It fails with [ErrNotAcquired] if a
// writer is before it.
func (m *RWMutex) TryRead(ctx context.Context) (*Lease, error) { return m.read(ctx, true) }

// Write waits until the write lock is held, like [Mutex.Acquire].
func (m *RWMutex) Write(ctx context.Context) (*Lease, error) { return m.write(ctx, false) }

// TryWrite is Write without waiting for other clients. It fails with [ErrNotAcquired]
// if another client is before it.
func (m *RWMutex) TryWrite(ctx context.Context) (*Lease, error) { return m.write(ctx, true) }

func (m *RWMutex) read(ctx context.Context, try bool) (*Lease, error) {
	var own *grant
	if owner := OwnerOf(ctx); owner != nil {
		own = m.writers.grantOf(owner)
	}
	return m.readBehind(ctx, own, try)
}

// readBehind acquires the read lock for the holder of the write lock own, which may be nil.
// We give the holder's place among the readers the number of its place among the writers,
// so that clients that wait for it as a writer also wait for it as a reader.
func (m *RWMutex) readBehind(ctx context.Context, own *grant, try bool) (*Lease, error) {
	return m.readers.acquire(ctx, func() (*grant, error) {
		if own == nil {
			return m.line.acquire(ctx, wish{kind: shared, rank: behindWriter(""), try: try})
		}
		g, err := m.beside(ctx, own)
		if err != nil {
			err = m.line.failure(err)
		}
		return g, err
	})
}

func (m *RWMutex) beside(ctx context.Context, own *grant) (*grant, error) {
	s, err := own.session(ctx)
	if err != nil {
		return nil, err
	}
	name := nameOf(own.path)
	if e, ok := m.line.infixes.parse(name); !ok || e.worn() {
		return nil, fmt.Errorf("another znode cannot share the number of %s", own.path)
	}
	infix := m.line.infixes[shared] + m.line.infixes.number(name, exclusive)
	c, err := enterBeside(ctx, s, own.path, m.line.dir, infix, &m.line.cfg)
	if err != nil {
		return nil, errors.Join(err, own.state())
	}
	g, err := m.line.wait(ctx, c, wish{kind: shared, rank: behindWriter(name)})
	if err != nil {
		c.remove()
		return nil, errors.Join(err, own.state())
	}
	return g, nil
}

func (m *RWMutex) write(ctx context.Context, try bool) (*Lease, error) {
	if owner := OwnerOf(ctx); owner != nil && m.readers.grantOf(owner) != nil && m.writers.grantOf(owner) == nil {
		return nil, m.line.failure(ErrUpgrade)
	}
	return m.writers.acquire(ctx, func() (*grant, error) {
		return m.line.acquire(ctx, wish{kind: exclusive, rank: first, try: try})
	})
}

// Downgrade turns a write lease of this lock into a read lease. No writer gets the lock in
// between. If Downgrade succeeds, it releases the write lease. If it fails, the write lease
// is unchanged or lost, and there is no read lease. Downgrade needs no owner.
func (m *RWMutex) Downgrade(ctx context.Context, write *Lease) (*Lease, error) {
	if err := write.Err(); err != nil {
		return nil, err
	}
	e, ok := m.line.infixes.parse(nameOf(write.Path()))
	if !ok || e.kind != exclusive || recipe.Parent(write.Path()) != m.line.dir {
		return nil, m.line.failure(fmt.Errorf("%s is not a write lease of this lock", write.Path()))
	}
	read, err := m.readBehind(ctx, write.g, false)
	if err != nil {
		return nil, err
	}
	if err := write.Release(ctx); errors.Is(err, ErrLost) {
		tidy(ctx, read.g)
		return nil, err
	}
	return read, nil // a write znode that still exists is deleted in the background
}

// behindWriter ranks readers: a reader waits for the nearest writer before it, unless
// that writer is own.
func behindWriter(own string) ranker {
	return func(line []entry, self int) string {
		for i := self - 1; i >= 0; i-- {
			if line[i].kind == exclusive && line[i].name != own {
				return line[i].name
			}
		}
		return ""
	}
}

// Participants returns readers and writers, holders first, in the order in which they
// asked.
func (m *RWMutex) Participants(ctx context.Context) ([]Participant, error) {
	return m.line.participants(ctx, 0)
}
