package lock

import (
	"context"
	"errors"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// Simple is the lock that everybody writes first: whoever can create one ephemeral
// znode holds it, and everybody else watches that znode. Each release wakes all
// who wait, of whom one succeeds; nobody knows who. It is here for comparison, and
// good enough where few compete. All methods are safe for concurrent use.
//
// Its Lease is as safe as that of a [Mutex]. The znode's data are a random mark,
// then what WithData says.
type Simple struct {
	conn      recipes.Conn
	dir, name string
	cfg       config
}

// NewSimple returns the lock whose znode is at path.
func NewSimple(conn recipes.Conn, path string, opts ...Option) *Simple {
	return &Simple{conn: conn, dir: recipes.Parent(path), name: nameOf(path), cfg: newConfig(opts)}
}

// Acquire waits until the lock is held, as [Mutex.Acquire] does, but in no order.
func (s *Simple) Acquire(ctx context.Context) (*Lease, error) { return s.acquire(ctx, false) }

// TryAcquire is Acquire without waiting for others: [ErrNotAcquired].
func (s *Simple) TryAcquire(ctx context.Context) (*Lease, error) { return s.acquire(ctx, true) }

func (s *Simple) acquire(ctx context.Context, try bool) (*Lease, error) {
	asIs := func(err error) error { return err }
	return repeat(ctx, s.cfg.retry, asIs, func() (*Lease, error) {
		g, err := s.attempt(ctx, try)
		if err != nil {
			return nil, err
		}
		return &Lease{g: g}, nil
	})
}

// attempt competes in one session.
func (s *Simple) attempt(ctx context.Context, try bool) (*grant, error) {
	session, err := s.conn.Session(ctx)
	if err != nil {
		return nil, err
	}
	c := &contender{session: session, dir: s.dir, mark: s.cfg.layout.mark(), fixed: s.name}
	for {
		created, err := s.create(ctx, c)
		if err == nil && !created {
			err = s.wait(ctx, session, try)
		}
		var g *grant
		if created {
			g, err = grantTo(ctx, c, &s.cfg)
		}
		if err != nil {
			c.forget()
			c.remove() // if it is there
			return nil, err
		}
		if g != nil {
			return g, nil
		}
	}
}

// create reports whether the znode is ours now.
func (s *Simple) create(ctx context.Context, c *contender) (bool, error) {
	path := recipes.Join(s.dir, s.name)
	data := append([]byte(c.mark), s.cfg.data...)
	_, err := c.session.Create(ctx, path, data, recipes.Ephemeral, s.cfg.acl)
	switch {
	case err == nil:
		c.name = s.name
		return true, nil
	case errors.Is(err, client.ErrNoNode):
		if err := recipes.EnsureContainers(ctx, c.session, s.dir); err != nil {
			return false, err
		}
		return s.create(ctx, c)
	case errors.Is(err, client.ErrNodeExists):
		return false, nil
	case errors.Is(err, client.ErrUnknownOutcome) && ctx.Err() == nil:
		return c.find(ctx)
	}
	return false, err
}

// wait waits until another's znode has gone.
func (s *Simple) wait(ctx context.Context, session recipes.Session, try bool) error {
	if try {
		return ErrNotAcquired
	}
	return recipes.AwaitChange(ctx, session, recipes.Join(s.dir, s.name))
}
