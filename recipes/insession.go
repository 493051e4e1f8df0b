package recipes

import (
	"context"
	"errors"

	"github.com/zkgo/zkgo/client"
)

// InSession does what may be done twice until it succeeds: in another session when
// one has ended, again when a connection broke. It returns other errors of do as
// they are, and ends with ctx.
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
