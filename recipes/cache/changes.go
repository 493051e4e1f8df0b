package cache

import (
	"context"
	"iter"
)

// Kind says what a [Change] is.
type Kind uint8

// The kinds.
const (
	// Resync says that anything may have changed: the reader begins, or was so slow
	// that changes were dropped. Whoever reads All after it and applies what follows
	// has missed nothing, though some of it may be in All already.
	Resync Kind = iota
	// Added: the znode is new. One that was deleted and created again between two
	// reads is Removed and Added.
	Added
	// Updated: the znode has been written.
	Updated
	// Removed: the znode is gone.
	Removed
	// Completed: all was read in this session. It comes again after every session
	// that has ended.
	Completed
)

// String returns the kind's name.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return "unknown"
	}
	return kindNames[k]
}

var kindNames = [...]string{"Resync", "Added", "Updated", "Removed", "Completed"}

// Change is one change of the cache.
type Change struct {
	Kind Kind
	// Node is the znode as it is now, or as it was known last if it was Removed.
	Node Node
	// Old is what it was before, for Updated.
	Old Node
}

// reader is one iteration over the changes; the cache's mu guards it.
type reader struct {
	buffer []Change
	awake  chan struct{} // has room for one
}

func (r *reader) wake() {
	select {
	case r.awake <- struct{}{}:
	default:
	}
}

// Changes yields the changes from the time when the iteration begins: first a
// Resync, and then what changes, in order. Nobody waits for a slow reader: what is
// more than [WithBuffer] behind is replaced by one Resync. It ends when ctx ends,
// and when the cache does: it yields Err last then.
func (c *Cache) Changes(ctx context.Context) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		r := &reader{buffer: []Change{{Kind: Resync}}, awake: make(chan struct{}, 1)}
		c.mu.Lock()
		c.readers[r] = struct{}{}
		if c.complete {
			r.buffer = append(r.buffer, Change{Kind: Completed})
		}
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.readers, r)
		}()
		for {
			change, more, err := c.take(r)
			switch {
			case ctx.Err() != nil:
				return
			case more:
				if !yield(change, nil) {
					return
				}
				continue
			case err != nil:
				yield(Change{}, err)
				return
			}
			select {
			case <-r.awake:
			case <-ctx.Done():
				return
			}
		}
	}
}

// take takes the next change for a reader.
func (c *Cache) take(r *reader) (change Change, more bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(r.buffer) == 0 {
		return Change{}, false, c.err
	}
	change, r.buffer = r.buffer[0], r.buffer[1:]
	return change, true, nil
}

// publish hands a change to all readers; mu is held.
func (c *Cache) publish(change Change) {
	for r := range c.readers {
		if len(r.buffer) >= c.cfg.buffer {
			r.buffer = []Change{{Kind: Resync}}
			if c.complete && change.Kind != Completed {
				r.buffer = append(r.buffer, Change{Kind: Completed}) // one may be among the dropped
			}
		}
		r.buffer = append(r.buffer, change)
	}
	c.tell()
}
