//go:build !unix

package cli

import (
	"context"
	"os"
)

// canAwaitKeys reports that awaitKey doesn't read keys on this platform.
const canAwaitKeys = false

// awaitKey waits for the end of ctx, because a read from a terminal can't be stopped
// on this platform. Ctrl-C ends the command.
func awaitKey(ctx context.Context, _ *os.File, _ string) (pressed bool) {
	<-ctx.Done()
	return false
}
