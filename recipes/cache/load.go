package cache

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// need says what has to be read of a znode.
type need uint8

const (
	needData need = 1 << iota
	needNames
	needAll = needData | needNames
)

// task is what is to be read of one znode. At any time at most one goroutine reads
// a znode, so that an older answer never replaces a newer one.
type task struct {
	need         need
	queued, busy bool
}

// load keeps the cache up to date in one session: watches mark what has to be read,
// a bounded number of goroutines reads it.
type load struct {
	c         *Cache
	s         recipes.Session
	ctx       context.Context
	end       context.CancelCauseFunc
	recursive bool          // one watch for all is set
	slots     chan struct{} // bounds the removals of watches
	wg        sync.WaitGroup

	// guarded by c.mu
	tasks   map[string]*task // of all that are marked or busy
	queue   []string
	running int
	over    bool
}

// follow keeps the cache up to date until the session or ctx ends, and returns why.
func (c *Cache) follow(ctx context.Context, s recipes.Session) error {
	// A new session may be with a server that is behind.
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

// again has everything read anew; mu is held.
func (l *load) again() {
	l.c.complete = false
	l.c.epoch++
	l.mark(l.c.root, needAll)
}

// mark says that something has to be read; mu is held.
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

// work reads what is marked until nothing is.
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

// rest notes that everything is read, if it is; mu is held.
func (l *load) rest() {
	if len(l.tasks) == 0 && !l.c.complete && l.ctx.Err() == nil {
		l.c.complete = true
		l.c.publish(Change{Kind: Completed})
	}
}

// answer is what was read of a znode.
type answer struct {
	data  []byte
	stat  client.Stat
	names []string
	err   error
}

// read reads a znode and leaves watches, unless there is one for all.
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
		n = needAll // it has just come
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

// retryRefused is the wait before a znode is read again that the server has
// refused to show. No watch tells when its ACL is changed.
const retryRefused = 10 * time.Second

// later marks a znode after a while; mu is held.
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

// depth returns how far below the root path is.
func (c *Cache) depth(path string) int {
	rest := strings.TrimPrefix(path, strings.TrimSuffix(c.root, "/"))
	if path == c.root {
		return 0
	}
	return strings.Count(rest, "/")
}

// wants reports whether path belongs into the cache.
func (c *Cache) wants(path string) bool {
	if path == c.root {
		return true
	}
	if c.depth(path) > c.cfg.depth {
		return false
	}
	for at := path; c.cfg.filter != nil && at != c.root; at = recipes.Parent(at) {
		if !c.cfg.filter(at) {
			return false
		}
	}
	return true
}
