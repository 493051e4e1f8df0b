package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// ErrLost means that an item no longer belongs to its consumer, because the session in which
// it was claimed has ended. Another consumer may have claimed it.
var ErrLost = errors.New("item lost")

// Item is an item that a consumer has claimed. One goroutine should finally call one of Ack,
// Return and Requeue. The other methods are safe for concurrent use.
//
// The item belongs to its consumer while the session of the claim lasts. If the connection
// is lost but restored in time, nothing happens. After the end of the session, other
// consumers can claim the item. We close Done before that.
type Item struct {
	// Values are the one or more values of the item. The slice is nil if Data is not in the
	// format of the queue. A consumer should Ack such an item, because otherwise it is
	// claimed again and again.
	Values [][]byte
	// Data is the znode's data.
	Data []byte
	// Created is when the item was put, by the server's clock.
	Created time.Time

	l    *line
	s    recipes.Session
	name string
	mark string // the claim's data
	hold recipes.Hold
}

// Done returns a channel that is closed when the item may soon belong to another
// consumer: see [recipes.LostBeforeExpiry].
func (i *Item) Done() <-chan struct{} { return i.hold.Done() }

// Err returns nil until then, and until Ack, Return or Requeue. It checks the clock.
func (i *Item) Err() error { return i.hold.Err() }

// Path returns the path of the item's znode.
func (i *Item) Path() string { return recipe.Join(i.l.path, i.name) }

func (i *Item) claimPath() string { return recipe.Join(i.l.claims, i.name) }

// Ack removes the item after it was processed. If the error matches [ErrLost], this call
// did not remove the item, and the item may be processed again. If the error also matches
// [client.ErrUnknownOutcome], we don't know whether the item was removed. After any other
// error, you can retry Ack.
func (i *Item) Ack(ctx context.Context) error {
	return i.finish(ctx, recipes.Op{Kind: recipes.OpDelete, Path: i.Path(), Version: client.AnyVersion})
}

// Requeue is Ack and also puts the same values at the end of the queue (of the items
// with the same priority, delay or id).
func (i *Item) Requeue(ctx context.Context) error {
	name := i.name[:max(len(i.name)-10, len(prefix))]
	if bar := strings.LastIndexByte(i.name, '|'); bar > 0 {
		name = i.name[:bar+1]
	}
	return i.finish(ctx,
		recipes.Op{Kind: recipes.OpDelete, Path: i.Path(), Version: client.AnyVersion},
		recipes.Op{Kind: recipes.OpCreate, Path: recipe.Join(i.l.path, name), Data: i.Data, Mode: recipes.PersistentSequential, ACL: i.l.acl})
}

// Return gives the item up: other consumers can claim it at its old place, whether Return
// succeeds or not. If the server does not reply, we continue in the background.
func (i *Item) Return(ctx context.Context) error {
	i.hold.Release()
	err := i.s.Delete(ctx, i.claimPath(), client.AnyVersion)
	if err == nil || ended(err) || errors.Is(err, client.ErrNoNode) {
		return nil
	}
	i.abandon()
	return i.l.failure(err)
}

// finish executes ops and ends the claim in one transaction, in the claim's own session.
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

// settle finds out whether a transaction was executed when its reply was lost. While the
// session lives, only this transaction can have removed the item.
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

// claimed reports whether a claim belongs to this item. We use it when the reply to the
// claim was lost.
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

// abandon deletes the claim, if it exists, in the background. We stop when it is deleted or
// the session has ended.
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

// ended reports whether an operation failed because its session has ended.
func ended(err error) bool {
	return errors.Is(err, client.ErrSessionExpired) || errors.Is(err, client.ErrClosed)
}
