package cache

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// ErrCacheClosed is the error of a cache that was closed.
var ErrCacheClosed = errors.New("cache closed")

// Node is a znode as the cache knows it. Its Data is shared and must not be changed.
type Node struct {
	Path string
	Data []byte
	// Stat is the stat of the latest read. If only the children have changed, it may be
	// outdated.
	Stat client.Stat
}

// Name returns the last part of the path.
func (n Node) Name() string { return n.Path[strings.LastIndexByte(n.Path, '/')+1:] }

// entry is a znode in the cache.
type entry struct {
	node  Node
	names map[string]struct{} // names of its children in the cache
	epoch uint64              // epoch of its last read
}

// Cache is a copy of znodes that is kept up to date until Close. All methods are safe for
// concurrent use. Only Wait, WaitFor, Changes and Close block.
//
// Without a connection, the cache keeps the last state it has read. In a new session
// it reads everything again; readers of Changes get the differences and then
// Completed.
type Cache struct {
	conn   recipes.Conn
	root   string
	cfg    config
	cancel context.CancelFunc
	over   chan struct{}

	mu       sync.Mutex
	entries  map[string]*entry // by path
	epoch    uint64            // incremented when everything must be read again
	complete bool
	changed  chan struct{} // closed and replaced whenever anything changes
	readers  map[*reader]struct{}
	err      error
}

// NewNode returns a cache of the znode at path, which need not exist.
func NewNode(conn recipes.Conn, path string, opts ...Option) *Cache {
	return start(conn, path, newConfig(0, opts))
}

// NewChildren returns a cache of the znode at path, which need not exist, and of
// its children.
func NewChildren(conn recipes.Conn, path string, opts ...Option) *Cache {
	return start(conn, path, newConfig(1, opts))
}

// NewTree returns a cache of the znode at path, which need not exist, and of
// everything below it.
func NewTree(conn recipes.Conn, path string, opts ...Option) *Cache {
	return start(conn, path, newConfig(unlimited, opts))
}

func start(conn recipes.Conn, root string, cfg config) *Cache {
	ctx, cancel := context.WithCancel(context.Background())
	c := &Cache{
		conn: conn, root: root, cfg: cfg, cancel: cancel, over: make(chan struct{}),
		entries: map[string]*entry{}, changed: make(chan struct{}), readers: map[*reader]struct{}{},
	}
	go c.run(ctx)
	return c
}

// pause is the delay between the end of a session and the next one.
const pause = 10 * time.Millisecond

// run follows the tree in one session after another.
func (c *Cache) run(ctx context.Context) {
	defer close(c.over)
	for {
		s, err := c.conn.Session(ctx)
		if err == nil {
			err = c.follow(ctx, s)
			if ctx.Err() == nil && errors.Is(err, client.ErrSessionExpired) {
				time.Sleep(pause)
				continue
			}
		}
		if ctx.Err() != nil {
			err = ErrCacheClosed
		}
		c.mu.Lock()
		c.err = fmt.Errorf("cache of %s: %w", c.root, err)
		c.tell()
		c.mu.Unlock()
		return
	}
}

// Close ends the cache and, if a server is reachable, waits until its watches are removed.
// It does not wait for reads in flight: we remove their watches when the replies arrive.
// The cache's contents remain readable.
func (c *Cache) Close() {
	c.cancel()
	<-c.over
}

// Err returns why the cache is no longer kept up to date, or nil while it is:
// [ErrCacheClosed], [client.ErrClosed], or why there will be no other session.
func (c *Cache) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Complete reports whether the cache has read everything in the current session. If not, it
// is outdated or has only some of the znodes.
func (c *Cache) Complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.complete
}

// Get returns the znode at path, or false if it is not in the cache.
func (c *Cache) Get(path string) (Node, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[path]
	if e == nil {
		return Node{}, false
	}
	return e.node, true
}

// Len returns the number of znodes in the cache.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

// All yields all znodes as they are when the iteration begins, sorted so that
// parents come before their children.
func (c *Cache) All() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		c.mu.Lock()
		paths := slices.Collect(maps.Keys(c.entries))
		nodes := c.nodes(paths)
		c.mu.Unlock()
		each(nodes, yield)
	}
}

// Children yields the children of the znode at path as they are when the
// iteration begins, sorted by name.
func (c *Cache) Children(path string) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		c.mu.Lock()
		var paths []string
		if e := c.entries[path]; e != nil {
			for name := range e.names {
				paths = append(paths, recipe.Join(path, name))
			}
		}
		nodes := c.nodes(paths)
		c.mu.Unlock()
		each(nodes, yield)
	}
}

// nodes returns the znodes at paths; mu is held.
func (c *Cache) nodes(paths []string) []Node {
	nodes := make([]Node, 0, len(paths))
	for _, p := range paths {
		if e := c.entries[p]; e != nil {
			nodes = append(nodes, e.node)
		}
	}
	return nodes
}

func each(nodes []Node, yield func(Node) bool) {
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.Path, b.Path) })
	for _, n := range nodes {
		if !yield(n) {
			return
		}
	}
}

// Wait waits until the cache is complete, the cache has ended, or ctx ends.
func (c *Cache) Wait(ctx context.Context) error {
	return c.await(ctx, func() bool { return c.complete })
}

// WaitFor waits until ok returns true and returns the znode that ok has accepted. ok
// gets the cached znode at path and whether it is in the cache. ok must not call the
// cache. WaitFor may miss a state that does not last.
func (c *Cache) WaitFor(ctx context.Context, path string, ok func(n Node, there bool) bool) (n Node, err error) {
	err = c.await(ctx, func() bool {
		e := c.entries[path]
		if n = (Node{}); e != nil {
			n = e.node
		}
		return (e != nil || c.complete) && ok(n, e != nil)
	})
	return n, err
}

// await waits until ok returns true. It calls ok with mu held.
func (c *Cache) await(ctx context.Context, ok func() bool) error {
	for {
		c.mu.Lock()
		done, changed, err := ok(), c.changed, c.err
		c.mu.Unlock()
		if done || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("cache of %s: %w", c.root, context.Cause(ctx))
		}
	}
}

// tell wakes all waiters; mu is held.
func (c *Cache) tell() {
	close(c.changed)
	c.changed = make(chan struct{})
	for r := range c.readers {
		r.wake()
	}
}
