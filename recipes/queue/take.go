package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// ErrEmpty is the error of a TryTake when no item is available.
var ErrEmpty = errors.New("queue is empty")

// Take waits for the first unclaimed item and claims it. The item stays in the queue until
// its Ack. If its consumer's session ends first, other consumers can claim it.
func (l *line) Take(ctx context.Context) (*Item, error) {
	for {
		item, rest, err := l.scan(ctx, isItem)
		if err == nil && item != nil {
			return item, nil
		}
		if err == nil {
			err = await(ctx, rest.due, rest.watches...)
		}
		if err != nil && !errors.Is(err, client.ErrSessionExpired) {
			return nil, l.failure(err)
		}
	}
}

// TryTake is Take without waiting. It fails with [ErrEmpty] if no item is available.
func (l *line) TryTake(ctx context.Context) (*Item, error) {
	for {
		item, rest, err := l.scan(ctx, isItem)
		switch {
		case err == nil && item != nil:
			return item, nil
		case err == nil:
			recipe.Drop(ctx, rest.watches...)
			return nil, l.failure(ErrEmpty)
		case !errors.Is(err, client.ErrSessionExpired):
			return nil, l.failure(err)
		}
	}
}

// Items claims and yields one item after another until ctx ends. The caller should end each
// with Ack, Return or Requeue. After a permanent error, Items yields that error and ends.
func (l *line) Items(ctx context.Context) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		for {
			item, err := l.Take(ctx)
			if ctx.Err() != nil && err != nil {
				return
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// rest is the watches and the time to wait for if no item is available.
type rest struct {
	watches []recipes.Watch
	due     time.Time // when the next item is due; zero if there is none
}

// scan claims the first wanted item that is available. If there is none, rest has the
// watches, and the caller must remove them.
func (l *line) scan(ctx context.Context, wanted func(name string) bool) (*Item, rest, error) {
	s, err := l.conn.Session(ctx)
	if err != nil {
		return nil, rest{}, err
	}
	// We list the claims first, so that the watch fires for a claim that ends after that.
	var r rest
	claims, err := l.list(ctx, s, l.claims, &r)
	var names []string
	if err == nil {
		names, err = l.list(ctx, s, l.path, &r)
	}
	var item *Item
	if err == nil {
		names = slices.DeleteFunc(names, func(n string) bool { return !isItem(n) || !wanted(n) })
		slices.SortFunc(names, l.order.compare)
		item, r.due, err = l.first(ctx, s, names, claims)
	}
	if err != nil || item != nil {
		recipe.Drop(ctx, r.watches...)
		return item, rest{}, err
	}
	return nil, r, nil
}

// list lists a directory and sets a watch.
func (l *line) list(ctx context.Context, s recipes.Session, path string, r *rest) ([]string, error) {
	for {
		names, _, w, err := s.ChildrenW(ctx, path)
		if err == nil {
			r.watches = append(r.watches, w)
			return names, nil
		}
		if !errors.Is(err, client.ErrNoNode) {
			return nil, err
		}
		if err := l.ensure(ctx, s); err != nil && !recipes.Again(ctx, err) {
			return nil, err
		}
	}
}

// first claims the first of names that is due and can be claimed.
func (l *line) first(ctx context.Context, s recipes.Session, names, claims []string) (*Item, time.Time, error) {
	for _, name := range names {
		if l.order.due != nil {
			if due := l.order.due(name); time.Now().Before(due) {
				return nil, due, nil // later items are not due either
			}
		}
		if slices.Contains(claims, name) {
			continue
		}
		item, err := l.claim(ctx, s, name)
		if item != nil || err != nil {
			return item, time.Time{}, err
		}
	}
	return nil, time.Time{}, nil
}

// claim claims one item. It returns nil if another client was faster.
func (l *line) claim(ctx context.Context, s recipes.Session, name string) (*Item, error) {
	i := &Item{l: l, s: s, name: name, mark: rand.Text()}
	for {
		_, err := s.Create(ctx, i.claimPath(), []byte(i.mark), recipes.Ephemeral, l.acl)
		switch {
		case err == nil:
			return i.open(ctx)
		case errors.Is(err, client.ErrUnknownOutcome):
			ours, lost := i.claimed(ctx)
			if ours {
				return i.open(ctx)
			}
			if lost != nil {
				i.abandon()
				return nil, errors.Join(err, lost)
			}
		case errors.Is(err, client.ErrNodeExists):
			return nil, nil //nolint:nilnil // another client was faster
		case errors.Is(err, client.ErrNoNode):
			if err := recipes.EnsureContainers(ctx, s, l.claims); err != nil {
				return nil, err
			}
		case !recipes.Again(ctx, err):
			return nil, err
		}
	}
}

// open reads a claimed item. We need no sync: the server that created our claim knows
// everything that the holder of an earlier claim has done.
func (i *Item) open(ctx context.Context) (*Item, error) {
	data, stat, err := i.s.Get(ctx, i.Path())
	if err == nil {
		i.Created, i.Data, i.Values = time.UnixMilli(stat.Ctime), data, decode(data)
		i.hold, err = i.s.Hold(ctx, recipes.LostBeforeExpiry)
	}
	if err == nil {
		return i, nil
	}
	i.abandon()
	if errors.Is(err, client.ErrNoNode) {
		return nil, nil //nolint:nilnil // another client has finished it
	}
	return nil, err
}

// await waits for one of the watches or, if until is not zero, for that time. It
// removes the watches.
func await(ctx context.Context, until time.Time, watches ...recipes.Watch) error {
	defer recipe.Drop(ctx, watches...)
	var clock <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		clock = t.C
	}
	var second <-chan client.Event
	if len(watches) > 1 {
		second = watches[1].Events()
	}
	ok := true
	select {
	case _, ok = <-watches[0].Events():
	case _, ok = <-second:
	case <-clock:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !ok {
		return client.ErrSessionExpired
	}
	return nil
}
