package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/zkgo/zkgo/client"
)

// tidying is how long [Drop] waits for a server.
const tidying = 500 * time.Millisecond

// Sleep waits, unless ctx ends before: then it returns ctx's cause.
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

// Drop takes watches away, though ctx may have ended. It waits for the server for
// half a second in all.
func Drop(ctx context.Context, watches ...Watch) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidying)
	defer cancel()
	for _, w := range watches {
		w.Remove(ctx)
	}
}

// Await waits for a watch's event, and takes the watch away if ctx ends before.
// When the watch ended without one, the session is over:
// [client.ErrSessionExpired].
func Await(ctx context.Context, w Watch) error {
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

// AwaitChange waits for one change of a znode, and not at all if it is not there.
// It watches by reading, which leaves no watch on a znode that is not there.
func AwaitChange(ctx context.Context, s Session, path string) error {
	_, _, w, err := s.GetW(ctx, path)
	if errors.Is(err, client.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	return Await(ctx, w)
}
