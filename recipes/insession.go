package recipes

import (
	"context"
	"errors"

	"github.com/zkgo/zkgo/client"
)

// InSession runs do until it succeeds, so do must be safe to repeat. It runs do again
// if the connection was lost, and in another session if the session has ended. It
// returns other errors of do unchanged, and returns when ctx ends.
func InSession(ctx context.Context, conn Conn, do func(s Session) error) error {
	for {
		s, err := conn.Session(ctx)
		if err != nil {
			return err
		}
		err = do(s)
		if err == nil || ctx.Err() != nil || !Again(ctx, err) && !errors.Is(err, client.ErrSessionExpired) {
			return err
		}
	}
}
