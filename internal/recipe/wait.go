package recipe

import (
	"context"
	"errors"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// tidying is how long [Drop] waits for the server.
const tidying = 500 * time.Millisecond

// Sleep waits for d. If ctx ends first, Sleep returns ctx's cause.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Drop removes watches, even if ctx has ended. We wait for the server for at most half a
// second in total.
func Drop(ctx context.Context, watches ...recipes.Watch) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidying)
	defer cancel()
	for _, w := range watches {
		w.Remove(ctx)
	}
}

// Await waits for a watch's event. If ctx ends first, Await removes the watch and
// returns ctx's cause. If the watch ends without an event, the session is over, and
// Await returns [client.ErrSessionExpired].
func Await(ctx context.Context, w recipes.Watch) error {
	select {
	case _, ok := <-w.Events():
		if !ok {
			return client.ErrSessionExpired
		}
		return nil
	case <-ctx.Done():
		Drop(ctx, w)
		return context.Cause(ctx)
	}
}

// AwaitChange waits until the znode changes. If the znode doesn't exist, AwaitChange
// returns immediately. We set the watch with a read, because a read leaves no watch on a
// missing znode.
func AwaitChange(ctx context.Context, s recipes.Session, path string) error {
	_, _, w, err := s.GetW(ctx, path)
	if errors.Is(err, client.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	return Await(ctx, w)
}
