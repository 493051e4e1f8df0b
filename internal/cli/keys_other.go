//go:build !unix

package cli

import (
	"context"
	"os"
)

// canAwaitKeys says that awaitKey reads no keys.
const canAwaitKeys = false

// awaitKey waits for the end of ctx: there is no way to stop a read of a terminal
// here. Ctrl-C ends the command.
func awaitKey(ctx context.Context, _ *os.File, _ string) (pressed bool) {
	<-ctx.Done()
	return false
}
