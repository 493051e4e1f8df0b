package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// ErrNodeClosed is the error of a Node that was closed.
var ErrNodeClosed = errors.New("node closed")

// Option configures a [Node].
type Option func(*Node)

// WithMode sets the znode's mode: [recipes.Ephemeral] by default, or [recipes.Persistent]
// or [recipes.Container], which Close also deletes.
func WithMode(m recipes.Mode) Option { return func(n *Node) { n.mode = m } }

// WithACL sets the znode's ACL.
func WithACL(acl ...client.ACL) Option { return func(n *Node) { n.acl = acl } }

// WithTakeover replaces an ephemeral znode of another session instead of waiting until it is
// gone. You should use it only for a name that belongs to this program, e.g. if an earlier
// run may have left a session. Two Nodes that replace each other's znode never stop.
func WithTakeover() Option { return func(n *Node) { n.takeover = true } }

// Node is a znode that is kept in existence until Close. All methods are safe for
// concurrent use.
//
// A lost connection does not affect the znode while the session lasts. After the session
// has ended, the Node creates an ephemeral znode again in the next session. A Node may
// learn too late that its session has ended, so you should use a lock of package lock for
// exclusion.
type Node struct {
	conn     recipes.Conn
	path     string
	mode     recipes.Mode
	acl      []client.ACL
	takeover bool
	cancel   context.CancelFunc
	over     chan struct{}
	former   map[int64]bool // sessions that created the znode; only run uses it
	session  int64          // the latest session; only run uses it

	mu        sync.Mutex
	abandoned bool // Close doesn't delete the znode
	data      []byte
	version   int           // version of data, incremented by SetData
	written   int           // version that the znode is known to have, or 0
	exists    bool          // the znode exists and is kept by this Node
	changed   chan struct{} // closed and replaced whenever something changes
	refused   error         // why the znode can't be created now
	err       error
}

// Keep returns a Node that keeps the znode at path from now on, with data. It creates
// missing parents as containers.
func Keep(conn recipes.Conn, path string, data []byte, opts ...Option) *Node {
	ctx, cancel := context.WithCancel(context.Background())
	n := &Node{
		conn: conn, path: path, mode: recipes.Ephemeral, cancel: cancel, over: make(chan struct{}),
		former: map[int64]bool{}, data: data, version: 1, changed: make(chan struct{}),
	}
	for _, o := range opts {
		o(n)
	}
	go n.run(ctx)
	return n
}

// Path returns the path of the znode.
func (n *Node) Path() string { return n.path }

// Exists reports whether the znode existed, and was kept by this Node, when the Node
// last checked.
func (n *Node) Exists() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.exists
}

// Err returns why the znode is no longer kept, or nil while it is: [ErrNodeClosed],
// [client.ErrClosed], or why there will be no other session.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// Wait waits until the znode exists and contains the newest data. If ctx ends first, the
// error includes the server's last refusal, if any. The Node retries a refused write until
// it is closed.
func (n *Node) Wait(ctx context.Context) error {
	for {
		n.mu.Lock()
		done, changed, refused, err := n.exists && n.written == n.version, n.changed, n.refused, n.err
		n.mu.Unlock()
		if done || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("node %s: %w", n.path, errors.Join(context.Cause(ctx), refused))
		}
	}
}

// SetData replaces the data. The Node writes it soon, and again whenever it recreates the
// znode. Wait waits until it is written. If other clients write data into the znode, that
// data stays until then.
func (n *Node) SetData(data []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.data = data
	n.version++
	n.tell()
}

// Data returns the data that the znode should have.
func (n *Node) Data() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.data
}

// Close deletes the znode, if it belongs to this Node, and stops keeping it. Close waits
// for the server for a few seconds. If that isn't enough, an ephemeral znode remains until
// its session ends.
func (n *Node) Close() {
	n.cancel()
	<-n.over
}

// tell wakes all waiters; mu is held.
func (n *Node) tell() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// note records the znode's state and wakes waiters if it has changed.
func (n *Node) note(exists bool, refused error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.exists != exists || n.refused != refused { //nolint:errorlint // identity is enough here
		n.exists, n.refused = exists, refused
		n.tell()
	}
}

// Delays of a Node.
const (
	pause        = 10 * time.Millisecond // between two sessions
	retryRefused = 5 * time.Second       // after the server has refused a write
	patience     = 5 * time.Second       // how long Close waits for the server
)

// run keeps the znode in one session after another.
func (n *Node) run(ctx context.Context) {
	defer close(n.over)
	for {
		s, err := n.conn.Session(ctx)
		if err == nil {
			err = n.keep(ctx, s)
			switch {
			case ctx.Err() != nil:
				n.leave(s)
			case errors.Is(err, client.ErrSessionExpired):
				n.note(n.mode != recipes.Ephemeral && n.Exists(), nil)
				wait(ctx, nil, pause)
				continue
			case !errors.Is(err, client.ErrClosed):
				n.note(false, err)
				wait(ctx, nil, retryRefused)
				continue
			}
		}
		if ctx.Err() != nil {
			err = ErrNodeClosed
		}
		n.mu.Lock()
		n.err, n.exists = fmt.Errorf("node %s: %w", n.path, err), false
		n.tell()
		n.mu.Unlock()
		return
	}
}

// wait waits for d, until something is closed, or until ctx ends.
func wait(ctx context.Context, something <-chan struct{}, d time.Duration) {
	select {
	case <-something:
	case <-time.After(d):
	case <-ctx.Done():
	}
}
