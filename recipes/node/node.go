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

// Option changes a [Node].
type Option func(*Node)

// WithMode sets what the znode is: [recipes.Ephemeral] by default, or
// [recipes.Persistent] or [recipes.Container], which Close deletes as well.
func WithMode(m recipes.Mode) Option { return func(n *Node) { n.mode = m } }

// WithACL sets the znode's ACL.
func WithACL(acl ...client.ACL) Option { return func(n *Node) { n.acl = acl } }

// WithTakeover replaces an ephemeral znode that is another session's, instead of
// waiting until it is gone: for a name that is this program's alone, whose former
// run may have left a session behind. Two who take over from each other never come
// to rest.
func WithTakeover() Option { return func(n *Node) { n.takeover = true } }

// Node is a znode that is kept in existence until Close. All methods are safe for
// concurrent use.
//
// A lost connection leaves the znode where it is, as long as the session lasts. When
// that has ended, an ephemeral znode is created again in the next one. Nothing tells a
// Node in time that its session ends: what excludes others is a lock, of package lock.
type Node struct {
	conn     recipes.Conn
	path     string
	mode     recipes.Mode
	acl      []client.ACL
	takeover bool
	cancel   context.CancelFunc
	over     chan struct{}
	former   map[int64]bool // sessions in which it was created; only for run
	session  int64          // the last of them; only for run

	mu        sync.Mutex
	abandoned bool // Close leaves the znode alone
	data      []byte
	version   int           // of data, raised by SetData
	written   int           // which version the znode holds, as far as this knows
	exists    bool          // and is kept by this Node
	changed   chan struct{} // closed and replaced whenever something changes
	refused   error         // why it cannot be created at the moment
	err       error
}

// Keep returns a Node that keeps the znode at path from now on, with data. What is
// missing above it is created as containers.
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

// Path returns where the znode is.
func (n *Node) Path() string { return n.path }

// Exists reports whether the znode was there, and kept by this Node, when that was
// looked at last.
func (n *Node) Exists() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.exists
}

// Err returns why the znode is not kept any more, nil as long as it is:
// [ErrNodeClosed], [client.ErrClosed], or why there is no other session.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// Wait waits until the znode exists and holds the newest data. If ctx ends before,
// the error also says what the server has refused, if it has: that is tried again
// for as long as the Node is not closed.
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

// SetData replaces the data, which are written soon, also when the znode has to be
// created again later. Wait waits for that. What others write into the znode stays
// until then.
func (n *Node) SetData(data []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.data = data
	n.version++
	n.tell()
}

// Data returns what the znode is to hold.
func (n *Node) Data() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.data
}

// Close deletes the znode, if it is this Node's, and ends the keeping. It waits for
// the server for a few seconds; then an ephemeral znode is left to its session.
func (n *Node) Close() {
	n.cancel()
	<-n.over
}

// tell wakes whoever waits; mu is held.
func (n *Node) tell() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// note says what is known.
func (n *Node) note(exists bool, refused error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.exists != exists || n.refused != refused { //nolint:errorlint // the same or not
		n.exists, n.refused = exists, refused
		n.tell()
	}
}

// Waits of a Node.
const (
	pause        = 10 * time.Millisecond // between two sessions
	retryRefused = 5 * time.Second       // after a refusal of the server
	patience     = 5 * time.Second       // of Close
)

// run keeps the znode in one session after the other.
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

// wait waits for a while, for something, or until ctx ends.
func wait(ctx context.Context, something <-chan struct{}, d time.Duration) {
	select {
	case <-something:
	case <-time.After(d):
	case <-ctx.Done():
	}
}
