package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// touchName is the name of the child that expires when the keeper is gone.
const touchName = "touch"

// TTLNode is a znode that outlives its keeper by a time to live, e.g. long enough to
// survive a restart, which an ephemeral znode does not. Curator calls it
// PersistentTtlNode: a container with a child that is written twice per time to live.
// When the keeper stops writing the child, the server deletes the child and then the
// container. All methods are safe for concurrent use.
type TTLNode struct {
	node   *Node
	conn   recipes.Conn
	ttl    time.Duration
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	touched time.Time
	err     error
}

// KeepTTL returns a TTLNode that keeps the znode at path from now on. ttl is a whole
// number of milliseconds. The server and the client must support TTL znodes: see
// [recipes.TTLCreator], and extendedTypesEnabled in the configuration of Apache
// ZooKeeper.
func KeepTTL(conn recipes.Conn, path string, data []byte, ttl time.Duration) *TTLNode {
	ctx, cancel := context.WithCancel(context.Background())
	t := &TTLNode{node: Keep(conn, path, data, WithMode(recipes.Container)), conn: conn, ttl: ttl, cancel: cancel}
	t.done.Go(func() { t.run(ctx) })
	return t
}

// Wait waits until the znode exists and contains the newest data, and its time to live has
// started. It fails as [Node.Wait] does, and immediately with [client.ErrUnimplemented] if
// the server or the client does not support TTL znodes.
func (t *TTLNode) Wait(ctx context.Context) error {
	for {
		if err := t.node.Wait(ctx); err != nil {
			return err
		}
		t.mu.Lock()
		touched, refused := !t.touched.IsZero(), t.err
		t.mu.Unlock()
		switch {
		case touched:
			return nil
		case errors.Is(refused, client.ErrUnimplemented):
			return fmt.Errorf("node %s: %w", t.node.path, refused)
		}
		wait(ctx, nil, pause)
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), refused)
		}
	}
}

// SetData replaces the data, like [Node.SetData].
func (t *TTLNode) SetData(data []byte) { t.node.SetData(data) }

// Touched returns when the time to live was last restarted.
func (t *TTLNode) Touched() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.touched
}

// Close stops keeping the znode, which remains until its time to live runs out.
func (t *TTLNode) Close() {
	t.cancel()
	t.done.Wait()
	t.node.abandon()
}

// abandon closes the Node without deleting the znode.
func (n *Node) abandon() {
	n.mu.Lock()
	n.abandoned = true
	n.mu.Unlock()
	n.Close()
}

// run writes the child before its time to live runs out.
func (t *TTLNode) run(ctx context.Context) {
	for ctx.Err() == nil {
		next := t.ttl / 2
		err := t.touch(ctx)
		if err != nil {
			next = min(next, retryRefused)
		}
		t.mu.Lock()
		if t.err = err; err == nil {
			t.touched = time.Now()
		}
		t.mu.Unlock()
		if errors.Is(err, client.ErrClosed) {
			return
		}
		wait(ctx, nil, next)
	}
}

// touch writes the child once.
func (t *TTLNode) touch(ctx context.Context) error {
	path := recipe.Join(t.node.path, touchName)
	for {
		if err := t.node.Wait(ctx); err != nil {
			return err
		}
		s, err := t.conn.Session(ctx)
		if err != nil {
			return err
		}
		_, err = s.Set(ctx, path, nil, client.AnyVersion)
		if errors.Is(err, client.ErrNoNode) {
			creator, can := s.(recipes.TTLCreator)
			if !can {
				return client.ErrUnimplemented
			}
			_, err = creator.CreateTTL(ctx, path, nil, t.ttl, nil)
		}
		if err == nil || !recipes.Again(ctx, err) && !raced(err) && !errors.Is(err, client.ErrSessionExpired) {
			return err
		}
		wait(ctx, nil, pause)
	}
}
