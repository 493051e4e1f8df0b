// Package config follows configuration that lies in a znode: typed, and with the
// last good value kept when somebody writes a bad one.
//
//	settings := config.Watch(recipes.On(c), "/config/app", config.JSON[Settings])
//	defer settings.Close()
//	s, err := settings.Wait(ctx)
//	for s, err := range settings.Changes(ctx) {
//		…
//	}
//
// # Rules
//
// It imports recipes/cache, recipes and client. A value is what decode has accepted;
// what it refuses, and the absence of the znode, is told by Err and changes nothing.
package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/cache"
)

var (
	// ErrMissing says that there is no such znode.
	ErrMissing = errors.New("configuration is missing")
	// ErrRefused says that decode has refused what the znode holds.
	ErrRefused = errors.New("configuration is refused")
)

// JSON decodes JSON, for [Watch].
func JSON[T any](data []byte) (v T, err error) {
	err = json.Unmarshal(data, &v)
	return v, err
}

// Config follows one znode until Close. All methods are safe for concurrent use.
//
// Without a connection, and after the end of a session until another has begun, it
// keeps what was seen last, and catches up then.
type Config[T any] struct {
	path   string
	c      *cache.Cache
	decode func(data []byte) (T, error)

	mu     sync.Mutex
	seen   bool  // anything
	mzxid  int64 // as seen last; 0 if it was not there
	value  T
	loaded bool  // value is one
	bad    error // why the newest is none
}

// Watch begins to follow the znode at path, which need not exist. decode is called
// once for every state that is seen, and should also check whether the value makes
// sense.
func Watch[T any](conn recipes.Conn, path string, decode func(data []byte) (T, error)) *Config[T] {
	return &Config[T]{path: path, c: cache.NewNode(conn, path), decode: decode}
}

// look takes what the cache has into account, and reports whether that is new.
func (c *Config[T]) look() (value T, loaded bool, bad error, news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, there := c.c.Get(c.path)
	if (there || c.c.Complete()) && (!c.seen || n.Stat.Mzxid != c.mzxid) {
		c.seen, c.mzxid, news = true, n.Stat.Mzxid, true
		if !there {
			c.bad = fmt.Errorf("config %s: %w", c.path, ErrMissing)
		} else if v, err := c.decode(n.Data); err != nil {
			c.bad = fmt.Errorf("config %s, version %d: %w: %w", c.path, n.Stat.Version, ErrRefused, err)
		} else {
			c.value, c.loaded, c.bad = v, true, nil
		}
	}
	return c.value, c.loaded, c.bad, news
}

// Get returns the last good value, false if there was none yet.
func (c *Config[T]) Get() (T, bool) {
	value, loaded, _, _ := c.look()
	return value, loaded
}

// Err returns why the newest state is not the value: [ErrMissing], [ErrRefused], or
// that the znode is not followed any more; nil if it is the value.
func (c *Config[T]) Err() error {
	if err := c.c.Err(); err != nil {
		return err
	}
	_, _, bad, _ := c.look()
	return bad
}

// Wait waits for the first good value. If ctx ends before, the error says what there
// was instead.
func (c *Config[T]) Wait(ctx context.Context) (T, error) {
	_, err := c.c.WaitFor(ctx, c.path, func(n cache.Node, there bool) bool {
		if !there {
			return false
		}
		_, bad := c.decode(n.Data)
		return bad == nil
	})
	value, loaded, bad, _ := c.look()
	if loaded {
		return value, nil
	}
	return value, errors.Join(err, bad)
}

// Changes yields the value that there is, if there is one, and then every other that
// is seen. When the newest state is no value it yields the last good one, or the zero
// T, with an error; it goes on. It ends as [cache.Cache.Changes] does.
func (c *Config[T]) Changes(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		first := true
		last, was := int64(0), false
		for change, err := range c.c.Changes(ctx) {
			if err != nil {
				value, _, _, _ := c.look()
				yield(value, err)
				return
			}
			n, there := c.c.Get(c.path)
			if change.Kind == cache.Resync && !there || !first && there == was && n.Stat.Mzxid == last {
				continue
			}
			first, last, was = false, n.Stat.Mzxid, there
			value, _, bad, _ := c.look()
			if !yield(value, bad) {
				return
			}
		}
	}
}

// Close ends the following. The last good value remains.
func (c *Config[T]) Close() { c.c.Close() }
