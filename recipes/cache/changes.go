package cache

import (
	"context"
	"iter"
)

// Kind is the kind of a [Change].
type Kind uint8

// The kinds.
const (
	// Resync means that anything may have changed: the iteration begins, or the reader was
	// so slow that we dropped changes. After a Resync, the reader should read All and apply
	// the changes that follow. It then misses nothing, but All may already include some of
	// these changes.
	Resync Kind = iota
	// Added: the znode is new. If a znode was deleted and created again between two reads,
	// we report Removed and then Added.
	Added
	// Updated: the znode has been written.
	Updated
	// Removed: the znode is gone.
	Removed
	// Completed: everything was read in the current session. We send it again in every new
	// session.
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
	// Node is the znode as it is now, or its last known state if it was Removed.
	Node Node
	// Old is the previous state, for Updated.
	Old Node
}

// reader is one iteration over the changes; the cache's mu guards it.
type reader struct {
	buffer []Change
	awake  chan struct{} // buffer of one
}

func (r *reader) wake() {
	select {
	case r.awake <- struct{}{}:
	default:
	}
}

// Changes yields the changes from the moment when the iteration begins: first a Resync, and
// then all changes in order. A slow reader does not block the cache: if more than
// [WithBuffer] changes are pending, we replace them with a single Resync. Changes ends when
// ctx ends, and when the cache ends, in which case it yields Err last.
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

// take removes and returns the next change for a reader.
func (c *Cache) take(r *reader) (change Change, more bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(r.buffer) == 0 {
		return Change{}, false, c.err
	}
	change, r.buffer = r.buffer[0], r.buffer[1:]
	return change, true, nil
}

// publish passes a change to all readers; mu is held.
func (c *Cache) publish(change Change) {
	for r := range c.readers {
		if len(r.buffer) >= c.cfg.buffer {
			r.buffer = []Change{{Kind: Resync}}
			if c.complete && change.Kind != Completed {
				r.buffer = append(r.buffer, Change{Kind: Completed}) // we may have dropped one
			}
		}
		r.buffer = append(r.buffer, change)
	}
	c.tell()
}
