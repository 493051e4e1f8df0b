package lock

import (
	"context"
	"errors"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// Simple is the naive lock: the client that creates one ephemeral znode holds it, and all
// other clients watch that znode. Each release wakes all waiters, and an arbitrary one
// succeeds. We offer it for comparison. It is good enough if few clients compete. All
// methods are safe for concurrent use.
//
// Its Lease is as safe as a Lease of a [Mutex]. The znode's data is a random mark followed
// by the data of WithData.
type Simple struct {
	conn      recipes.Conn
	dir, name string
	cfg       config
}

// NewSimple returns the lock with its znode at path.
func NewSimple(conn recipes.Conn, path string, opts ...Option) *Simple {
	return &Simple{conn: conn, dir: recipe.Parent(path), name: nameOf(path), cfg: newConfig(opts)}
}

// Acquire waits until the lock is held, like [Mutex.Acquire], but clients get the
// lock in no particular order.
func (s *Simple) Acquire(ctx context.Context) (*Lease, error) { return s.acquire(ctx, false) }

// TryAcquire is Acquire without waiting for other clients. It fails with
// [ErrNotAcquired] if another client holds the lock.
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
			c.remove() // if it exists
			return nil, err
		}
		if g != nil {
			return g, nil
		}
	}
}

// create tries to create the znode, and reports whether it belongs to c.
func (s *Simple) create(ctx context.Context, c *contender) (bool, error) {
	path := recipe.Join(s.dir, s.name)
	data := append([]byte(c.mark), s.cfg.data...)
	for {
		_, err := c.session.Create(ctx, path, data, recipes.Ephemeral, s.cfg.acl)
		switch {
		case err == nil:
			c.name = s.name
			return true, nil
		case errors.Is(err, client.ErrNoNode):
			if err := recipes.EnsureContainers(ctx, c.session, s.dir); err != nil {
				return false, err
			}
		case errors.Is(err, client.ErrNodeExists):
			return false, nil
		case errors.Is(err, client.ErrUnknownOutcome) && ctx.Err() == nil:
			return c.settle(ctx, err)
		default:
			return false, err
		}
	}
}

// wait waits until the other client's znode is gone.
func (s *Simple) wait(ctx context.Context, session recipes.Session, try bool) error {
	if try {
		return ErrNotAcquired
	}
	return recipe.AwaitChange(ctx, session, recipe.Join(s.dir, s.name))
}
