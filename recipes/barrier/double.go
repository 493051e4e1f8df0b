package barrier

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// ready is the znode that lets all begin.
const ready = "ready"

// DoubleBarrier is one process's part in a piece of work that a number of
// processes begin together, with Enter, and end together, with Leave. Enter and
// Leave are called in turn, by one goroutine.
type DoubleBarrier struct {
	conn    recipes.Conn
	path    string
	members int
	id      string
	session recipes.Session // of our znode
}

// NewDouble returns a part in the barrier at path, which members processes enter
// together. path is a directory for their znodes and need not exist.
func NewDouble(conn recipes.Conn, path string, members int) *DoubleBarrier {
	return &DoubleBarrier{conn: conn, path: path, members: members, id: rand.Text()}
}

func (d *DoubleBarrier) own() string { return recipes.Join(d.path, d.id) }

func (d *DoubleBarrier) ready() string { return recipes.Join(d.path, ready) }

// Enter waits until all members have entered. If ctx ends before, this one has not
// entered. If the session ends meanwhile the error matches
// [client.ErrSessionExpired]: the others may have begun with it and may have gone
// by now, so whether to enter again is for the caller to know.
func (d *DoubleBarrier) Enter(ctx context.Context) error {
	s, err := d.conn.Session(ctx)
	if err == nil {
		d.session = s
		if err = d.register(ctx); err == nil {
			err = d.awaitReady(ctx)
		}
	}
	if err != nil {
		d.withdraw()
		return fmt.Errorf("barrier %s: enter: %w", d.path, err)
	}
	return nil
}

// register creates our znode; that it is there already is from an earlier try.
func (d *DoubleBarrier) register(ctx context.Context) error {
	for {
		_, err := d.session.Create(ctx, d.own(), nil, recipes.Ephemeral, nil)
		switch {
		case err == nil, errors.Is(err, client.ErrNodeExists) && d.mine(ctx):
			return nil
		case errors.Is(err, client.ErrNodeExists): // of our last session: it goes
			if err := recipes.Sleep(ctx, retryExisting); err != nil {
				return err
			}
		case errors.Is(err, client.ErrNoNode):
			if err := recipes.EnsureContainers(ctx, d.session, d.path); err != nil {
				return err
			}
		case !recipes.Again(ctx, err):
			return err
		}
	}
}

const retryExisting = 100 * time.Millisecond

func (d *DoubleBarrier) mine(ctx context.Context) bool {
	stat, there, err := d.session.Exists(ctx, d.own())
	return err == nil && there && stat.EphemeralOwner == d.session.ID()
}

// awaitReady waits for the znode ready, which the last to come creates.
func (d *DoubleBarrier) awaitReady(ctx context.Context) error {
	for {
		_, there, w, err := d.session.ExistsW(ctx, d.ready())
		if err != nil {
			return err
		}
		if there {
			recipes.Drop(ctx, w)
			return nil
		}
		names, _, err := d.session.Children(ctx, d.path)
		if err != nil {
			recipes.Drop(ctx, w)
			return err
		}
		if len(others(names)) < d.members {
			if err := recipes.Await(ctx, w); err != nil {
				return err
			}
			continue
		}
		recipes.Drop(ctx, w)
		_, err = d.session.Create(ctx, d.ready(), nil, recipes.Ephemeral, nil)
		if err != nil && !errors.Is(err, client.ErrNodeExists) && !recipes.Again(ctx, err) {
			return err
		}
	}
}

// others returns the members among names, in order.
func others(names []string) []string {
	names = slices.DeleteFunc(names, func(n string) bool { return n == ready })
	slices.Sort(names)
	return names
}

// Leave waits until all members that have entered have left, or are gone. If ctx
// ends before, the others need not wait for this one. A lost connection is waited out;
// if the session ends this one has left for the others, and still waits for them.
func (d *DoubleBarrier) Leave(ctx context.Context) error {
	if d.session == nil {
		return fmt.Errorf("barrier %s: leave: it was not entered", d.path)
	}
	err := recipes.InSession(ctx, d.conn, func(s recipes.Session) error { return d.leave(ctx, s) })
	if err != nil {
		d.withdraw()
		return fmt.Errorf("barrier %s: leave: %w", d.path, err)
	}
	d.session = nil
	return nil
}

// leave wakes few at a time: the first in order waits for the last one, who is
// waited for by nobody else, and everybody else for the first one.
func (d *DoubleBarrier) leave(ctx context.Context, s recipes.Session) error {
	for {
		names, _, err := s.Children(ctx, d.path)
		if errors.Is(err, client.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		members := others(names)
		self := slices.Index(members, d.id)
		switch {
		case len(members) == 0 || len(members) == 1 && self == 0:
			if err := erase(ctx, s, d.own()); err != nil {
				return err
			}
			return erase(ctx, s, d.ready())
		case self == 0:
			err = recipes.AwaitChange(ctx, s, recipes.Join(d.path, members[len(members)-1]))
		default:
			if err = erase(ctx, s, d.own()); err == nil {
				err = recipes.AwaitChange(ctx, s, recipes.Join(d.path, members[0]))
			}
		}
		if err != nil {
			return err
		}
	}
}

// erase deletes a znode that may have gone already.
func erase(ctx context.Context, s recipes.Session, path string) error {
	for {
		err := s.Delete(ctx, path, client.AnyVersion)
		if err == nil || errors.Is(err, client.ErrNoNode) {
			return nil
		}
		if !recipes.Again(ctx, err) {
			return err
		}
	}
}

// withdraw deletes our znode in the background: it ends with its session at the
// latest.
func (d *DoubleBarrier) withdraw() {
	s, path := d.session, d.own()
	d.session = nil
	if s == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = erase(context.Background(), s, path)
	}()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}
