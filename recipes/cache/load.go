package cache

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// need is the set of the parts of a znode that we have to read.
type need uint8

const (
	needData need = 1 << iota
	needNames
	needAll = needData | needNames
)

// task is a pending or running read of one znode. At most one goroutine reads a znode at
// any time, so that an older reply never replaces a newer one.
type task struct {
	need         need
	queued, busy bool
}

// load keeps the cache up to date in one session: when a watch fires, we mark the znode,
// and a bounded number of goroutines read the marked znodes.
type load struct {
	c         *Cache
	s         recipes.Session
	ctx       context.Context
	end       context.CancelCauseFunc
	recursive bool          // one recursive watch is set
	slots     chan struct{} // bounds the removals of watches
	wg        sync.WaitGroup

	// guarded by c.mu
	tasks   map[string]*task // of all znodes that are marked or being read
	queue   []string
	running int
	over    bool
}

// follow keeps the cache up to date until the session or ctx ends, and returns the
// reason.
func (c *Cache) follow(ctx context.Context, s recipes.Session) error {
	// We sync because the server of a new session may lag behind.
	if err := s.Sync(ctx, c.root); err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	l := &load{c: c, s: s, ctx: ctx, end: end, slots: make(chan struct{}, c.cfg.inFlight), tasks: map[string]*task{}}
	if err := l.watchAll(); err != nil {
		end(err)
	}
	c.mu.Lock()
	l.again()
	c.mu.Unlock()
	<-ctx.Done()
	c.mu.Lock()
	l.over, c.complete = true, false
	c.mu.Unlock()
	l.wg.Wait()
	return context.Cause(ctx)
}

// again marks everything to be read again; mu is held.
func (l *load) again() {
	l.c.complete = false
	l.c.epoch++
	l.mark(l.c.root, needAll)
}

// mark records that a znode must be read; mu is held.
func (l *load) mark(path string, n need) {
	if l.over || !l.c.wants(path) {
		return
	}
	t := l.tasks[path]
	if t == nil {
		t = &task{}
		l.tasks[path] = t
	}
	t.need |= n
	if !t.queued && !t.busy {
		t.queued = true
		l.queue = append(l.queue, path)
	}
	if len(l.queue) > 0 && l.running < l.c.cfg.inFlight {
		l.running++
		l.wg.Go(l.work)
	}
}

// work reads marked znodes until none is left.
func (l *load) work() {
	for {
		l.c.mu.Lock()
		if len(l.queue) == 0 || l.over {
			l.running--
			l.c.mu.Unlock()
			return
		}
		path := l.queue[0]
		l.queue = l.queue[1:]
		t := l.tasks[path]
		n, epoch := t.need, l.c.epoch
		t.queued, t.busy, t.need = false, true, 0
		l.c.mu.Unlock()

		r := l.read(path, n)

		l.c.mu.Lock()
		t.busy = false
		l.take(path, n, epoch, r)
		if t.need != 0 {
			l.mark(path, t.need)
		} else {
			delete(l.tasks, path)
		}
		l.rest()
		l.c.mu.Unlock()
	}
}

// rest publishes Completed if we have read everything; mu is held.
func (l *load) rest() {
	if len(l.tasks) == 0 && !l.c.complete && l.ctx.Err() == nil {
		l.c.complete = true
		l.c.publish(Change{Kind: Completed})
	}
}

// answer is the result of reading a znode.
type answer struct {
	data  []byte
	stat  client.Stat
	names []string
	err   error
}

// read reads a znode and sets watches, unless a recursive watch is set.
func (l *load) read(path string, n need) (r answer) {
	for {
		if n&needData != 0 {
			r.data, r.stat, r.err = l.data(path)
		}
		if n&needNames != 0 && r.err == nil && l.c.depth(path) < l.c.cfg.depth {
			r.names, r.err = l.names(path)
		}
		if path != l.c.root || !errors.Is(r.err, client.ErrNoNode) || l.recursive {
			return r
		}
		_, there, w, err := l.s.ExistsW(l.ctx, path)
		if err != nil {
			r.err = err
			return r
		}
		l.await(w, path, needAll)
		if !there {
			return r
		}
		n = needAll // it was just created
	}
}

func (l *load) data(path string) ([]byte, client.Stat, error) {
	if l.recursive {
		return l.s.Get(l.ctx, path)
	}
	data, stat, w, err := l.s.GetW(l.ctx, path)
	if err == nil {
		l.await(w, path, needData)
	}
	return data, stat, err
}

func (l *load) names(path string) ([]string, error) {
	if l.recursive {
		names, _, err := l.s.Children(l.ctx, path)
		return names, err
	}
	names, _, w, err := l.s.ChildrenW(l.ctx, path)
	if err == nil {
		l.await(w, path, needNames)
	}
	return names, err
}

// retryRefused is the pause before a znode is read again after the server has refused a
// read. We have to poll, because no watch fires when the znode's ACL changes.
const retryRefused = 10 * time.Second

// later marks a znode after retryRefused; mu is held.
func (l *load) later(path string) {
	l.wg.Go(func() {
		select {
		case <-time.After(retryRefused):
			l.c.mu.Lock()
			defer l.c.mu.Unlock()
			l.mark(path, needAll)
		case <-l.ctx.Done():
		}
	})
}

// depth returns how many levels path is below the root.
func (c *Cache) depth(path string) int {
	rest := strings.TrimPrefix(path, strings.TrimSuffix(c.root, "/"))
	if path == c.root {
		return 0
	}
	return strings.Count(rest, "/")
}

// wants reports whether path belongs in the cache.
func (c *Cache) wants(path string) bool {
	if path == c.root {
		return true
	}
	if c.depth(path) > c.cfg.depth {
		return false
	}
	for at := path; c.cfg.filter != nil && at != c.root; at = recipe.Parent(at) {
		if !c.cfg.filter(at) {
			return false
		}
	}
	return true
}
