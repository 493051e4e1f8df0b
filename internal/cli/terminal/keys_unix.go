//go:build unix

package terminal

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// keyWait is the duration of one wait for a key, i.e. the longest delay until we notice the
// end of ctx.
const keyWait = 100 * time.Millisecond

// CanAwaitKeys reports that AwaitKey reads keys on this platform.
const CanAwaitKeys = true

// AwaitKey returns when one of the keys is pressed on a terminal in raw mode, or when ctx
// ends. After it returns, we read nothing more, so later input goes to the prompt.
func AwaitKey(ctx context.Context, f *os.File, keys string) (pressed bool) {
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
