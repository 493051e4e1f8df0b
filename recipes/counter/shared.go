package counter

import (
	"context"
	"errors"
	"iter"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// Versioned is a value together with its version.
type Versioned[T any] struct {
	Value   T
	Version int32 // the znode's version
	Zxid    int64 // zxid of the write; it grows with every change
}

// SharedValue is a value that all clients see and any client can change. It is
// Curator's SharedValue. All methods are safe for concurrent use.
//
// Like [Atomic], a SharedValue waits for the next connection or session if it loses one.
type SharedValue struct {
	cell cell
	seed []byte
}

// NewSharedValue returns the value at path, which is seed until a client has set it.
func NewSharedValue(conn recipes.Conn, path string, seed []byte, opts ...Option) *SharedValue {
	var cfg config
	for _, o := range opts {
		o(&cfg)
	}
	return &SharedValue{cell: cell{conn, path, cfg.acl}, seed: seed}
}

// Get returns the value. It creates the znode if it does not exist.
func (v *SharedValue) Get(ctx context.Context) (Versioned[[]byte], error) {
	for {
		now, err := v.cell.read(ctx)
		if err == nil && now.there {
			return now.versioned(), nil
		}
		if err == nil {
			_, _, err = v.cell.replace(ctx, now, v.seed)
		}
		// Whichever client created it, our next read returns it.
		if err != nil && (!errors.Is(err, client.ErrUnknownOutcome) || ctx.Err() != nil) {
			return Versioned[[]byte]{}, v.cell.failure(err)
		}
	}
}

func (c content) versioned() Versioned[[]byte] {
	return Versioned[[]byte]{Value: c.data, Version: c.stat.Version, Zxid: c.stat.Mzxid}
}

// Set replaces the value unconditionally.
func (v *SharedValue) Set(ctx context.Context, value []byte) error {
	for {
		now, err := v.Get(ctx)
		if err != nil {
			return err
		}
		if _, ok, err := v.TrySet(ctx, now, value); err != nil || ok {
			return err
		}
	}
}

// TrySet replaces the value if it has not been written since old was read, and otherwise
// reports false. It returns the current value in both cases. It works at every version,
// including -1, which a znode reaches after 2³² - 1 writes.
func (v *SharedValue) TrySet(ctx context.Context, old Versioned[[]byte], value []byte) (Versioned[[]byte], bool, error) {
	for {
		now, err := v.Get(ctx)
		if err != nil {
			return old, false, err
		}
		if now.Zxid != old.Zxid {
			return now, false, nil
		}
		s, err := v.cell.conn.Session(ctx)
		if err != nil {
			return old, false, v.cell.failure(err)
		}
		before := content{session: s, there: true, data: now.Value, stat: client.Stat{Version: now.Version, Mzxid: now.Zxid}}
		stat, done, err := v.cell.replace(ctx, before, value)
		if err != nil {
			return old, false, v.cell.failure(err)
		}
		if done {
			return Versioned[[]byte]{Value: value, Version: stat.Version, Zxid: stat.Mzxid}, true, nil
		}
	}
}

// Changes yields the current value and then every change. It may combine changes that
// follow each other quickly. It ends when ctx ends, or after a permanent error, which it
// yields last. If the znode does not exist, Changes waits for it.
func (v *SharedValue) Changes(ctx context.Context) iter.Seq2[Versioned[[]byte], error] {
	return func(yield func(Versioned[[]byte], error) bool) {
		var last int64
		for {
			now, err := v.next(ctx, last)
			switch {
			case ctx.Err() != nil:
				return
			case errors.Is(err, client.ErrSessionExpired):
				continue
			case err != nil:
				yield(now, v.cell.failure(err))
				return
			}
			if !yield(now, nil) {
				return
			}
			last = now.Zxid
		}
	}
}

// next waits for a value that was written by a zxid other than last.
func (v *SharedValue) next(ctx context.Context, last int64) (Versioned[[]byte], error) {
	var none Versioned[[]byte]
	for {
		s, err := v.cell.conn.Session(ctx)
		if err != nil {
			return none, err
		}
		data, stat, w, err := s.GetW(ctx, v.cell.path)
		if errors.Is(err, client.ErrNoNode) {
			var there bool
			if _, there, w, err = s.ExistsW(ctx, v.cell.path); err == nil && there {
				recipe.Drop(ctx, w)
				continue
			}
			stat.Mzxid = last
		}
		if err != nil {
			return none, err
		}
		if stat.Mzxid != last {
			recipe.Drop(ctx, w)
			return Versioned[[]byte]{Value: data, Version: stat.Version, Zxid: stat.Mzxid}, nil
		}
		select {
		case _, ok := <-w.Events():
			if !ok {
				return none, client.ErrSessionExpired
			}
		case <-ctx.Done():
			recipe.Drop(ctx, w)
			return none, context.Cause(ctx)
		}
	}
}
