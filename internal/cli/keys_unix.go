//go:build unix

package cli

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// keyWait is how long one wait for a key takes: so late the end of ctx is noticed.
const keyWait = 100 * time.Millisecond

// canAwaitKeys says that awaitKey reads keys.
const canAwaitKeys = true

// awaitKey returns when one of the keys is pressed on a terminal in raw mode, or ctx
// ends. Nothing is read when it has returned, so that what is typed then is the
// prompt's.
func awaitKey(ctx context.Context, f *os.File, keys string) (pressed bool) {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}} //nolint:gosec // a file's number is small
	var typed [16]byte
	for ctx.Err() == nil {
		n, err := unix.Poll(fds, int(keyWait.Milliseconds()))
		if err != nil && err != unix.EINTR { //nolint:errorlint // it is never wrapped
			return false
		}
		if n <= 0 {
			continue
		}
		n, err = f.Read(typed[:])
		if err != nil {
			return false
		}
		for _, c := range typed[:n] {
			for i := range len(keys) {
				if keys[i] == c {
					return true
				}
			}
		}
	}
	return false
}
