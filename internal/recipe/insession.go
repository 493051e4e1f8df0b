package recipe

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// InSession runs do until it succeeds, so do must be safe to repeat. We run do again if the
// connection was lost, and in another session if the session has ended. InSession returns
// other errors of do, and returns when ctx ends. If the outcome of a write of an earlier
// run is unknown, the error also matches [client.ErrUnknownOutcome].
func InSession(ctx context.Context, conn recipes.Conn, do func(s recipes.Session) error) error {
	var r Repeated
	for {
		s, err := conn.Session(ctx)
		if err != nil {
			return r.Failed(err)
		}
		if err = do(s); err == nil {
			return nil
		}
		err = r.Failed(err)
		if ctx.Err() != nil || !recipes.Again(ctx, err) && !errors.Is(err, client.ErrSessionExpired) {
			return err
		}
	}
}

// Repeated records whether one of the failed runs of a repeated operation may have written
// something.
type Repeated struct{ unknown error }

// Failed returns err, the error of one run. If the outcome of an earlier run is
// unknown, the result also matches [client.ErrUnknownOutcome].
func (r *Repeated) Failed(err error) error {
	switch {
	case errors.Is(err, client.ErrUnknownOutcome):
		r.unknown = err
	case r.unknown != nil:
		return fmt.Errorf("%w (an earlier try: %w: %v)", err, client.ErrUnknownOutcome, r.unknown)
	}
	return err
}
