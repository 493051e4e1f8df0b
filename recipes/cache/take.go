package cache

import (
	"errors"
	"slices"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
)

// take applies an answer to the cache; mu is held. epoch is the cache's epoch when
// the read began.
func (l *load) take(path string, n need, epoch uint64, r answer) {
	switch {
	case r.err == nil:
		l.store(path, n, epoch, r)
	case errors.Is(r.err, client.ErrNoNode):
		l.c.drop(path)
	case l.ctx.Err() != nil:
	case errors.Is(r.err, client.ErrSessionExpired), errors.Is(r.err, client.ErrClosed):
		l.end(r.err)
	default:
		if errors.Is(r.err, client.ErrNoAuth) {
			l.c.drop(path) // we must not show its new state
		}
		l.later(path)
	}
}

// store stores a znode in the cache; mu is held.
func (l *load) store(path string, n need, epoch uint64, r answer) {
	c := l.c
	if c.entries[path] == nil && n != needAll {
		l.mark(path, needAll) // it is new or was created again
		return
	}
	if path != c.root {
		parent := c.entries[recipe.Parent(path)]
		if parent == nil {
			// We read the znode again with its parent, which is gone or was read too early.
			l.mark(recipe.Parent(path), needAll)
			return
		}
		parent.names[lastName(path)] = struct{}{}
	}
	if n&needData != 0 {
		c.set(path, r)
	}
	e := c.entries[path]
	if n == needAll {
		e.epoch = epoch
	}
	if n&needNames != 0 {
		l.compare(path, e, r.names)
	}
}

// set stores data and metadata in the cache; mu is held.
func (c *Cache) set(path string, r answer) {
	if c.cfg.noData {
		r.data = nil
	}
	now := Node{Path: path, Data: r.data, Stat: r.stat}
	e := c.entries[path]
	if e == nil {
		c.entries[path] = &entry{node: now, names: map[string]struct{}{}}
		c.publish(Change{Kind: Added, Node: now})
		return
	}
	old := e.node
	e.node = now
	switch {
	case old.Stat.Czxid != now.Stat.Czxid:
		c.publish(Change{Kind: Removed, Node: old})
		c.publish(Change{Kind: Added, Node: now})
	case old.Stat.Mzxid != now.Stat.Mzxid:
		c.publish(Change{Kind: Updated, Node: now, Old: old})
	}
}

// compare marks the children that must be read after their parent's children were listed;
// mu is held. We also mark children that we are reading now, because that reply
// may be older than the list, and children that are not in the list, because the list may
// be older than their cached state.
func (l *load) compare(path string, e *entry, names []string) {
	listed := make(map[string]struct{}, len(names))
	for _, name := range names {
		listed[name] = struct{}{}
		child := recipe.Join(path, name)
		known, t := l.c.entries[child], l.tasks[child]
		switch {
		case known == nil || known.epoch != l.c.epoch:
			l.mark(child, needAll)
		case t != nil && t.busy:
			l.mark(child, needData)
		}
	}
	var missing []string
	for name := range e.names {
		if _, there := listed[name]; !there {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	for _, name := range missing {
		l.mark(recipe.Join(path, name), needData)
	}
}

// drop removes a znode and everything below it from the cache; mu is held.
func (c *Cache) drop(path string) {
	e := c.entries[path]
	if e == nil {
		return
	}
	for name := range e.names {
		c.drop(recipe.Join(path, name))
	}
	delete(c.entries, path)
	if parent := c.entries[recipe.Parent(path)]; parent != nil && path != c.root {
		delete(parent.names, lastName(path))
	}
	c.publish(Change{Kind: Removed, Node: e.node})
}

func lastName(path string) string { return Node{Path: path}.Name() }
