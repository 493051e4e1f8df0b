// Package naming gives out unique numbers and unique names.
//
//	ids := naming.NewIDs(recipes.On(c), "/ids/orders", 1000)
//	id, err := ids.Next(ctx)
//
//	names := naming.New(recipes.On(c), "/names")
//	lease, err := names.Claim(ctx, "reports", []byte("host-7"))
//
// # Rules
//
// It imports recipes/lock, recipes and client. A number is never given out twice,
// whatever is lost: a block whose allocation got no answer is left unused. A name is
// claimed as long as its owner's session lives, by a lock, or reserved for good.
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
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
)

var (
	// ErrTaken says that a name is another's.
	ErrTaken = errors.New("name is taken")
	// ErrExhausted says that there are no more numbers.
	ErrExhausted = errors.New("numbers are exhausted")
	// ErrBadName says that a name has a slash, or is empty.
	ErrBadName = errors.New("bad name")
)

// IDs gives out numbers that are unique among all who use the same path: 1, 2, 3 and
// so on, with gaps where a program has ended or an answer was lost. They grow for
// each program, not in the order of time among several. Safe for concurrent use. A
// lost connection or a session that ends is waited out.
type IDs struct {
	conn  recipes.Conn
	path  string
	block int64

	turn       chan struct{} // holds one token; whoever has it may use what follows
	next, last int64         // what is left of the block
}

// NewIDs returns the numbers of the znode at path, which need not exist and holds the
// last number of the newest block. So many as block says, at least 1, are allocated
// by one write.
func NewIDs(conn recipes.Conn, path string, block int64) *IDs {
	i := &IDs{conn: conn, path: path, block: max(block, 1), next: 1, turn: make(chan struct{}, 1)}
	i.turn <- struct{}{}
	return i
}

// Next returns another number. It asks the server when the block is used up: without
// a connection it waits then, until ctx ends. [ErrExhausted] if there is none.
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

// allocate tries once to allocate a block, and returns its last number; 0 if somebody
// was faster or it is not known.
func (i *IDs) allocate(ctx context.Context) (int64, error) {
	s, err := i.conn.Session(ctx)
	if err != nil {
		return 0, err
	}
	data, stat, err := s.Get(ctx, i.path)
	if errors.Is(err, client.ErrNoNode) {
		if err = recipes.EnsureContainers(ctx, s, recipes.Parent(i.path)); err == nil {
			_, err = s.Create(ctx, i.path, []byte("0"), recipes.Persistent, nil)
		}
		return 0, passing(ctx, err)
	}
	if err != nil {
		return 0, passing(ctx, err)
	}
	used, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil || used < 0 {
		return 0, fmt.Errorf("its data are no number: %q", data)
	}
	if used > math.MaxInt64-i.block {
		return 0, ErrExhausted
	}
	last := used + i.block
	if _, err := recipes.Replace(ctx, s, i.path, strconv.AppendInt(nil, last, 10), stat); err != nil {
		return 0, passing(ctx, err)
	}
	return last, nil
}

// passing returns nil for an error after which another try is right.
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

// Names are names in a directory, of which each has one owner. Safe for concurrent
// use. A lost connection or a session that ends is waited out, until ctx ends; only a
// name that was claimed is lost with its session: see [lock.Lease].
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
	return recipes.Join(recipes.Join(n.dir, kind), name), nil
}

// Claim makes a name this program's until the lease is released or lost: nobody else
// has it as long as the lease holds. [ErrTaken] if somebody has it, or is about to.
// data tell others who.
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

// Claimed returns the data of who has claimed a name, false if nobody has.
func (n *Names) Claimed(ctx context.Context, name string) ([]byte, bool, error) {
	path, err := n.path("claimed", name)
	if err != nil {
		return nil, false, err
	}
	holder, there, err := lock.NewMutex(n.conn, path).Holder(ctx)
	return holder.Data, there, err
}

// Reserve makes a name an owner's for good. Whoever reserves it again as the same
// owner has it, too: so it may be repeated when it has failed. [ErrTaken] if it is
// another's.
func (n *Names) Reserve(ctx context.Context, name string, owner []byte) error {
	path, err := n.path("reserved", name)
	if err != nil {
		return err
	}
	return n.each(ctx, path, func(s recipes.Session) (bool, error) {
		if _, err := s.Create(ctx, path, owner, recipes.Persistent, nil); err == nil {
			return true, nil
		} else if errors.Is(err, client.ErrNoNode) {
			return false, recipes.EnsureContainers(ctx, s, recipes.Parent(path))
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

// Free ends a reservation of an owner. None is no error; another's is [ErrTaken].
func (n *Names) Free(ctx context.Context, name string, owner []byte) error {
	path, err := n.path("reserved", name)
	if err != nil {
		return err
	}
	turns, err := n.path("freeing", name)
	if err != nil {
		return err
	}
	tried := false // what is another's then has been free between
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

// free deletes a reservation, if it is the owner's. Two who free in the same name do
// so one after the other: between the look and the delete of one the other could
// have freed it, and a third have reserved it, whose znode has the same version.
func (n *Names) free(ctx context.Context, s recipes.Session, path, turns string, owner []byte) (bool, error) {
	turn, err := lock.NewMutex(n.conn, turns).Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = turn.Release(context.WithoutCancel(ctx)) }() // what fails goes on in the background
	if err := s.Sync(ctx, path); err != nil {
		return false, err
	}
	data, stat, err := s.Get(ctx, path)
	if err != nil || !bytes.Equal(data, owner) {
		return false, err // look again
	}
	err = turn.Multi(ctx, recipes.Op{Kind: recipes.OpDelete, Path: path, Version: stat.Version})
	if errors.Is(err, lock.ErrLost) {
		err = nil // another turn
	}
	return false, err // look again, whatever became of it
}

// Reserved returns all reserved names, sorted.
func (n *Names) Reserved(ctx context.Context) (names []string, err error) {
	dir := recipes.Join(n.dir, "reserved")
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

// each repeats something in this session or the next until it is done, or cannot be.
func (n *Names) each(ctx context.Context, path string, do func(s recipes.Session) (done bool, err error)) error {
	for {
		s, err := n.conn.Session(ctx)
		if err != nil {
			return fmt.Errorf("name %s: %w", path, err)
		}
		done, err := do(s)
		if done {
			return nil
		}
		if err = passing(ctx, err); err != nil {
			return fmt.Errorf("name %s: %w", path, err)
		}
	}
}
