//go:build !unix

package terminal

import (
	"context"
	"os"
)

// CanAwaitKeys reports that AwaitKey doesn't read keys on this platform.
const CanAwaitKeys = false

// AwaitKey waits for the end of ctx, because a read from a terminal can't be stopped
// on this platform. Ctrl-C ends the command.
func AwaitKey(ctx context.Context, _ *os.File, _ string) (pressed bool) {
	<-ctx.Done()
	return false
}
