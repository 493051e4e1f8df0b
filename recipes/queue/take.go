package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// ErrEmpty is the answer of a TryTake when there is nothing to take.
var ErrEmpty = errors.New("queue is empty")

// Take waits for the first item that nobody has taken, and claims it. The item
// stays in the queue until its Ack; if its consumer's session ends before, it is
// there for others again.
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

// TryTake is Take without waiting: [ErrEmpty].
func (l *line) TryTake(ctx context.Context) (*Item, error) {
	for {
		item, rest, err := l.scan(ctx, isItem)
		switch {
		case err == nil && item != nil:
			return item, nil
		case err == nil:
			recipes.Drop(ctx, rest.watches...)
			return nil, l.failure(ErrEmpty)
		case !errors.Is(err, client.ErrSessionExpired):
			return nil, l.failure(err)
		}
	}
}

// Items takes one item after the other until ctx ends. Each has to be given back by
// Ack, Return or Requeue. After an error that will not go away it yields that, and
// ends.
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

// rest says what to wait for when nothing could be taken.
type rest struct {
	watches []recipes.Watch
	due     time.Time // of the next item; zero if there is none
}

// scan claims the first item that can be taken of those that are wanted. If there
// is none, rest has the watches, and they have to be removed.
func (l *line) scan(ctx context.Context, wanted func(name string) bool) (*Item, rest, error) {
	s, err := l.conn.Session(ctx)
	if err != nil {
		return nil, rest{}, err
	}
	// The claims first: one that has ended since lets the watch fire.
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
		recipes.Drop(ctx, r.watches...)
		return item, rest{}, err
	}
	return nil, r, nil
}

// list lists a directory, and leaves a watch.
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
				return nil, due, nil // and so are those behind it
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

// claim takes one item, nil if somebody else was faster.
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
			return nil, nil //nolint:nilnil // as said
		case errors.Is(err, client.ErrNoNode):
			if err := recipes.EnsureContainers(ctx, s, l.claims); err != nil {
				return nil, err
			}
		case !recipes.Again(ctx, err):
			return nil, err
		}
	}
}

// open reads an item that is claimed. Behind the creation of the claim the server
// knows whatever the holder of an earlier one has done.
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
		return nil, nil //nolint:nilnil // somebody has finished it
	}
	return nil, err
}

// await waits for one of some watches, until a time if that is not zero, and takes
// the others away.
func await(ctx context.Context, until time.Time, watches ...recipes.Watch) error {
	defer recipes.Drop(ctx, watches...)
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
