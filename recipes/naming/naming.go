// Package naming assigns unique numbers and unique names.
//
//	ids := naming.NewIDs(recipes.On(c), "/ids/orders", 1000)
//	id, err := ids.Next(ctx)
//
//	names := naming.New(recipes.On(c), "/names")
//	lease, err := names.Claim(ctx, "reports", []byte("host-7"))
//
// # Rules
//
// The package imports recipes/lock, recipes and client. We never assign a number twice,
// even after failures: if the reply to the allocation of a block was lost, we don't use the
// block. A name is either claimed, with a lock, while its owner's session lives, or
// reserved permanently.
package naming

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
)

var (
	// ErrTaken means that a name belongs to another owner.
	ErrTaken = errors.New("name is taken")
	// ErrExhausted means that there are no more numbers.
	ErrExhausted = errors.New("numbers are exhausted")
	// ErrBadName means that a name is empty or contains a slash.
	ErrBadName = errors.New("bad name")
)

// IDs assigns numbers that are unique among all users of the same path: 1, 2, 3 and so on,
// with gaps after a program has ended or a reply was lost. The numbers grow within each
// program, but not over time among several programs. IDs is safe for concurrent use. If the
// connection or the session is lost, it waits for the next one.
type IDs struct {
	conn  recipes.Conn
	path  string
	block int64

	turn       chan struct{} // contains one token; the goroutine that has it may use the fields below
	next, last int64         // the numbers left in the block
}

// NewIDs returns the numbers of the znode at path, which need not exist. Its data is the
// last number of the latest block. One write allocates block numbers, at least 1.
func NewIDs(conn recipes.Conn, path string, block int64) *IDs {
	i := &IDs{conn: conn, path: path, block: max(block, 1), next: 1, turn: make(chan struct{}, 1)}
	i.turn <- struct{}{}
	return i
}

// Next returns a new number. When the block is used up, Next asks the server, and
// waits for a connection until ctx ends. It returns [ErrExhausted] if there is no
// number left.
func (i *IDs) Next(ctx context.Context) (int64, error) {
	select {
	case <-i.turn:
	case <-ctx.Done():
		return 0, fmt.Errorf("ids %s: %w", i.path, context.Cause(ctx))
	}
	defer func() { i.turn <- struct{}{} }()
	for i.next > i.last {
		last, err := i.allocate(ctx)
		if err != nil {
			return 0, fmt.Errorf("ids %s: %w", i.path, err)
		}
		if last > 0 {
			i.next, i.last = last-i.block+1, last
		}
	}
	i.next++
	return i.next - 1, nil
}

// allocate tries once to allocate a block, and returns its last number. It returns 0 if
// another client was faster or if the result is unknown.
func (i *IDs) allocate(ctx context.Context) (int64, error) {
	s, err := i.conn.Session(ctx)
	if err != nil {
		return 0, err
	}
	data, stat, err := s.Get(ctx, i.path)
	if errors.Is(err, client.ErrNoNode) {
		if err = recipes.EnsureContainers(ctx, s, recipe.Parent(i.path)); err == nil {
			_, err = s.Create(ctx, i.path, []byte("0"), recipes.Persistent, nil)
		}
		return 0, passing(ctx, err)
	}
	if err != nil {
		return 0, passing(ctx, err)
	}
	used, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil || used < 0 {
		return 0, fmt.Errorf("its data is not a number: %q", data)
	}
	if used > math.MaxInt64-i.block {
		return 0, ErrExhausted
	}
	last := used + i.block
	if _, err := recipe.Replace(ctx, s, i.path, strconv.AppendInt(nil, last, 10), stat); err != nil {
		return 0, passing(ctx, err)
	}
	return last, nil
}

// passing returns nil for an error after which the caller should retry.
func passing(ctx context.Context, err error) error {
	for _, again := range []error{client.ErrBadVersion, client.ErrNoNode, client.ErrNodeExists, client.ErrSessionExpired} {
		if errors.Is(err, again) && ctx.Err() == nil && !errors.Is(err, client.ErrClosed) {
			return nil
		}
	}
	if recipes.Again(ctx, err) {
		return nil
	}
	return err
}

// Names are names in a directory. Each name has one owner. Names is safe for concurrent
// use. If the connection or the session is lost, it waits for the next one until ctx ends,
// but a claimed name is lost with its session: see [lock.Lease].
type Names struct {
	conn recipes.Conn
	dir  string
}

// New returns the names at dir, which need not exist.
func New(conn recipes.Conn, dir string) *Names { return &Names{conn: conn, dir: dir} }

func (n *Names) path(kind, name string) (string, error) {
	if name == "" || strings.Contains(name, "/") {
		return "", fmt.Errorf("names %s: %w: %q", n.dir, ErrBadName, name)
	}
	return recipe.Join(recipe.Join(n.dir, kind), name), nil
}

// Claim assigns a name to this program until the lease is released or lost. No other client
// has the name during the lease. Claim returns [ErrTaken] if another client has the name or
// is about to get it. data identifies the owner to other clients.
func (n *Names) Claim(ctx context.Context, name string, data []byte) (*lock.Lease, error) {
	path, err := n.path("claimed", name)
	if err != nil {
		return nil, err
	}
	l, err := lock.NewMutex(n.conn, path, lock.WithData(data)).TryAcquire(ctx)
	if errors.Is(err, lock.ErrNotAcquired) {
		err = fmt.Errorf("name %s: %w", path, ErrTaken)
	}
	return l, err
}

// Claimed returns the data of the client that has claimed a name, or false if no client has.
func (n *Names) Claimed(ctx context.Context, name string) ([]byte, bool, error) {
	path, err := n.path("claimed", name)
	if err != nil {
		return nil, false, err
	}
	holder, there, err := lock.NewMutex(n.conn, path).Holder(ctx)
	return holder.Data, there, err
}

// Reserve assigns a name to an owner permanently. Reserving it again for the same
// owner succeeds, so Reserve can be repeated after a failure. It returns [ErrTaken]
// if the name belongs to another owner.
func (n *Names) Reserve(ctx context.Context, name string, owner []byte) error {
	path, err := n.path("reserved", name)
	if err != nil {
		return err
	}
	return n.each(ctx, path, func(s recipes.Session) (bool, error) {
		if _, err := s.Create(ctx, path, owner, recipes.Persistent, nil); err == nil {
			return true, nil
		} else if errors.Is(err, client.ErrNoNode) {
			return false, recipes.EnsureContainers(ctx, s, recipe.Parent(path))
		} else if !errors.Is(err, client.ErrNodeExists) {
			return false, err
		}
		data, _, err := s.Get(ctx, path)
		if err == nil && !bytes.Equal(data, owner) {
			err = ErrTaken
		}
		return err == nil, err
	})
}

// Free ends an owner's reservation. Free succeeds if the name isn't reserved, and returns
// [ErrTaken] if it belongs to another owner.
func (n *Names) Free(ctx context.Context, name string, owner []byte) error {
	path, err := n.path("reserved", name)
	if err != nil {
		return err
	}
	turns, err := n.path("freeing", name)
	if err != nil {
		return err
	}
	tried := false // if another owner has the name after that, it was free in between
	return n.each(ctx, path, func(s recipes.Session) (bool, error) {
		switch data, _, err := s.Get(ctx, path); {
		case errors.Is(err, client.ErrNoNode):
			return true, nil
		case err != nil:
			return false, err
		case !bytes.Equal(data, owner) && tried:
			return true, nil
		case !bytes.Equal(data, owner):
			return false, ErrTaken
		}
		tried = true
		return n.free(ctx, s, path, turns, owner)
	})
}

// free deletes a reservation if it belongs to the owner. We use a lock so that two clients
// free the same name one after another. Otherwise, between the read and the delete of one
// client, the other could free the name and a third could reserve it, and that znode would
// have the same version.
func (n *Names) free(ctx context.Context, s recipes.Session, path, turns string, owner []byte) (bool, error) {
	turn, err := lock.NewMutex(n.conn, turns).Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = turn.Release(context.WithoutCancel(ctx)) }() // if this fails, it continues in the background
	if err := s.Sync(ctx, path); err != nil {
		return false, err
	}
	data, stat, err := s.Get(ctx, path)
	if err != nil || !bytes.Equal(data, owner) {
		return false, err // look again
	}
	err = turn.Multi(ctx, recipes.Op{Kind: recipes.OpDelete, Path: path, Version: stat.Version})
	if errors.Is(err, lock.ErrLost) {
		err = nil // take another turn
	}
	return false, err // read it again, whatever the result
}

// Reserved returns all reserved names, sorted.
func (n *Names) Reserved(ctx context.Context) (names []string, err error) {
	dir := recipe.Join(n.dir, "reserved")
	err = n.each(ctx, dir, func(s recipes.Session) (bool, error) {
		var err error
		names, _, err = s.Children(ctx, dir)
		if errors.Is(err, client.ErrNoNode) {
			err = nil
		}
		return err == nil, err
	})
	slices.Sort(names)
	return names, err
}

// each repeats do, in this session or the next, until it succeeds or fails permanently.
func (n *Names) each(ctx context.Context, path string, do func(s recipes.Session) (done bool, err error)) error {
	var r recipe.Repeated
	for {
		s, err := n.conn.Session(ctx)
		if err != nil {
			return fmt.Errorf("name %s: %w", path, r.Failed(err))
		}
		done, err := do(s)
		if done {
			return nil
		}
		if err == nil {
			continue
		}
		if err = passing(ctx, r.Failed(err)); err != nil {
			return fmt.Errorf("name %s: %w", path, err)
		}
	}
}
