package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkgo/zkgo/recipes"
)

// grant is a held lock. It has one lease or, if the lock is reentrant, several.
type grant struct {
	path  string // of the lock's znode
	token Token

	session  func(ctx context.Context) (recipes.Session, error) // the session to write in
	valid    func() error                                       // nil while the lock is certainly held
	deadline func() time.Time
	finish   func(ctx context.Context) error // deletes the znode, now or in the background

	gone   bool          // the holder has deleted the znode already
	free   func()        // ends the owner's hold; nil without an owner
	revoke chan struct{} // closed when a client asks for the lock
	stop   chan struct{} // closed to end the guard
	ended  chan struct{} // closed when the guard has ended

	mu     sync.Mutex
	leases int
	done   chan struct{}
	err    error
}

func newGrant(path string, token Token) *grant {
	return &grant{
		path: path, token: token, leases: 1,
		revoke: make(chan struct{}), stop: make(chan struct{}), ended: make(chan struct{}), done: make(chan struct{}),
	}
}

// state returns why the grant has ended, or nil if it has not.
func (g *grant) state() error {
	if err := g.valid(); err != nil {
		g.lose(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

func (g *grant) lose(cause error) { g.end(fmt.Errorf("%w: %s: %w", ErrLost, g.path, cause)) }

// end closes done. Only the first reason is kept.
func (g *grant) end(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = err
		close(g.done)
	}
}

// askedToRevoke tells the holder that another client wants the lock.
func (g *grant) askedToRevoke() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.revoke:
	default:
		close(g.revoke)
	}
}

// again adds a lease to a grant that is still held. Both results are nil if we are
// releasing the grant.
func (g *grant) again() (*Lease, error) {
	if err := g.state(); err != nil && g.released() {
		return nil, nil //nolint:nilnil // see the doc comment
	} else if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leases == 0 {
		return nil, nil //nolint:nilnil // see the doc comment
	}
	g.leases++
	return &Lease{g: g}, nil
}

// lost reports whether the grant ended before it was released.
func (g *grant) lost() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return errors.Is(g.err, ErrLost)
}

func (g *grant) released() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leases == 0
}

// release ends one lease. After the last lease it frees the lock.
func (g *grant) release(ctx context.Context) error {
	lost := g.state()
	g.mu.Lock()
	g.leases--
	last := g.leases == 0
	g.mu.Unlock()
	if !last {
		return lost
	}
	if g.free != nil {
		g.free()
	}
	g.end(ErrReleased)
	close(g.stop)
	<-g.ended
	if err := g.finish(ctx); err != nil {
		return fmt.Errorf("lock %s: released, but its znode is still to be deleted: %w", g.path, err)
	}
	return lost
}
