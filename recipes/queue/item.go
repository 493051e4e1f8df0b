package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// ErrLost says that an item was no longer its consumer's: the session that it was
// taken in has ended. It may be with another.
var ErrLost = errors.New("item lost")

// Item is an item that was taken. One of Ack, Return and Requeue has to be called in
// the end, by one goroutine; the other methods are safe for concurrent use.
//
// It is its consumer's as long as the session lasts that it was taken in: a lost
// connection that comes back in time changes nothing, the end of the session gives
// the item to others, and Done is closed before.
type Item struct {
	// Values are what was put, one or more. They are nil if Data are in no form of a
	// queue's: nothing else keeps such an item from being taken again and again but
	// an Ack.
	Values [][]byte
	// Data are the znode's.
	Data []byte
	// Created is when, by the server's clock.
	Created time.Time

	l    *line
	s    recipes.Session
	name string
	mark string // the claim's data
	hold recipes.Hold
}

// Done returns a channel that is closed when the item may soon be another's: see
// [recipes.LostBeforeExpiry].
func (i *Item) Done() <-chan struct{} { return i.hold.Done() }

// Err returns nil until then, and until Ack, Return or Requeue. It looks at the
// clock.
func (i *Item) Err() error { return i.hold.Err() }

// Path returns the path of the item's znode.
func (i *Item) Path() string { return recipes.Join(i.l.path, i.name) }

func (i *Item) claimPath() string { return recipes.Join(i.l.claims, i.name) }

// Ack removes the item: it was processed. An error that matches [ErrLost] says that
// the item was not removed by this call, and may be processed again, or, if it
// matches [client.ErrUnknownOutcome] too, that this is not known. After another error
// Ack can be tried again.
func (i *Item) Ack(ctx context.Context) error {
	return i.finish(ctx, recipes.Op{Kind: recipes.OpDelete, Path: i.Path(), Version: client.AnyVersion})
}

// Requeue is Ack, and puts the same values at the end of the queue (of those with
// the same priority, delay or id).
func (i *Item) Requeue(ctx context.Context) error {
	name := i.name[:max(len(i.name)-10, len(prefix))]
	if bar := strings.LastIndexByte(i.name, '|'); bar > 0 {
		name = i.name[:bar+1]
	}
	return i.finish(ctx,
		recipes.Op{Kind: recipes.OpDelete, Path: i.Path(), Version: client.AnyVersion},
		recipes.Op{Kind: recipes.OpCreate, Path: recipes.Join(i.l.path, name), Data: i.Data, Mode: recipes.PersistentSequential, ACL: i.l.acl})
}

// Return gives the item up: it is there for others at its old place, whether they
// succeed or not. It goes on in the background if the server does not answer.
func (i *Item) Return(ctx context.Context) error {
	i.hold.Release()
	err := i.s.Delete(ctx, i.claimPath(), client.AnyVersion)
	if err == nil || ended(err) || errors.Is(err, client.ErrNoNode) {
		return nil
	}
	i.abandon()
	return i.l.failure(err)
}

// finish ends the claim together with what ops do, in the claim's own session.
func (i *Item) finish(ctx context.Context, ops ...recipes.Op) error {
	all := append([]recipes.Op{{Kind: recipes.OpDelete, Path: i.claimPath(), Version: client.AnyVersion}}, ops...)
	for {
		err := i.s.Multi(ctx, all...)
		switch {
		case err == nil:
			i.hold.Release()
			return nil
		case errors.Is(err, client.ErrUnknownOutcome):
			over, serr := i.settle(ctx, err)
			if over {
				i.hold.Release()
				return serr
			}
			if serr != nil {
				return serr
			}
		case ended(err), errors.Is(err, client.ErrNoNode):
			i.hold.Release()
			i.abandon()
			return fmt.Errorf("%w: %s: %w", ErrLost, i.Path(), err)
		case !recipes.Again(ctx, err):
			return i.l.failure(err)
		}
	}
}

// settle finds out what became of a transaction without an answer. While the
// session lives only this one can have removed the item.
func (i *Item) settle(ctx context.Context, unknown error) (over bool, err error) {
	err = i.s.Sync(ctx, i.Path())
	var there bool
	if err == nil {
		_, there, err = i.s.Exists(ctx, i.claimPath())
	}
	switch {
	case err == nil && there:
		return false, nil
	case err == nil:
		return true, nil
	case ended(err):
		return true, fmt.Errorf("%w: %s: %w", ErrLost, i.Path(), unknown)
	}
	return false, i.l.failure(unknown)
}

// claimed reports whether a claim without an answer is ours.
func (i *Item) claimed(ctx context.Context) (bool, error) {
	if err := i.s.Sync(ctx, i.claimPath()); err != nil {
		return false, err
	}
	data, stat, err := i.s.Get(ctx, i.claimPath())
	if errors.Is(err, client.ErrNoNode) {
		return false, nil
	}
	return err == nil && stat.EphemeralOwner == i.s.ID() && bytes.Equal(data, []byte(i.mark)), err
}

// giveUp returns the item in the background.
func (i *Item) giveUp() {
	i.hold.Release()
	i.abandon()
}

// abandon ends a claim in the background, if it is there: until that is done or the
// session has ended.
func (i *Item) abandon() {
	go func() {
		ctx := context.Background()
		for {
			ours, err := i.claimed(ctx)
			if err == nil && ours {
				err = i.s.Delete(ctx, i.claimPath(), client.AnyVersion)
			}
			if err == nil || ended(err) || !errors.Is(err, client.ErrConnectionLoss) && !errors.Is(err, client.ErrUnknownOutcome) {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
}

// ended reports whether an operation failed because its session is over.
func ended(err error) bool {
	return errors.Is(err, client.ErrSessionExpired) || errors.Is(err, client.ErrClosed)
}
