// Package config follows configuration stored in a znode. The configuration is typed. If a
// client writes a bad value, we keep the last good one.
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
// The package imports recipes/cache, recipes and client. A value is data that decode has
// accepted. If decode rejects the data or the znode is missing, Err reports it and the
// value doesn't change.
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
	// ErrMissing means that the znode does not exist.
	ErrMissing = errors.New("configuration is missing")
	// ErrRefused means that decode has rejected the znode's data.
	ErrRefused = errors.New("configuration is refused")
)

// JSON decodes JSON, for use with [Watch].
func JSON[T any](data []byte) (v T, err error) {
	err = json.Unmarshal(data, &v)
	return v, err
}

// Config follows one znode until Close. All methods are safe for concurrent use.
//
// Without a connection, and after the end of a session, Config keeps the last state
// it has seen. It catches up when a new session has begun.
type Config[T any] struct {
	path   string
	c      *cache.Cache
	decode func(data []byte) (T, error)

	mu     sync.Mutex
	seen   bool  // a state was seen
	mzxid  int64 // of the last state seen, or 0 if the znode was missing
	value  T
	loaded bool  // value is valid
	bad    error // why the newest state has no value
}

// Watch begins to follow the znode at path, which need not exist. We call decode once for
// every state that we see. It should also validate the value.
func Watch[T any](conn recipes.Conn, path string, decode func(data []byte) (T, error)) *Config[T] {
	return &Config[T]{path: path, c: cache.NewNode(conn, path), decode: decode}
}

// look updates the value from the cache and reports whether the state is new.
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

// Get returns the last good value, or false if there was no good value yet.
func (c *Config[T]) Get() (T, bool) {
	value, loaded, _, _ := c.look()
	return value, loaded
}

// Err returns why the newest state is not the value: [ErrMissing], [ErrRefused], or
// why the znode is no longer followed. It returns nil if it is the value.
func (c *Config[T]) Err() error {
	if err := c.c.Err(); err != nil {
		return err
	}
	_, _, bad, _ := c.look()
	return bad
}

// Wait waits for the first good value. If ctx ends first, the error describes the znode's
// state instead.
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

// Changes yields the current value, if any, and then every new value. If the newest state
// isn't a valid value, Changes yields the last good value, or the zero T, together with an
// error, and continues. It ends as [cache.Cache.Changes] does.
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

// Close stops following the znode. The last good value remains.
func (c *Config[T]) Close() { c.c.Close() }
