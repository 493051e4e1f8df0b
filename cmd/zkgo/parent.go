package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// lineLog writes whole lines, for many goroutines.
type lineLog struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineLog) line(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintln(l.w, text) // a log that nobody takes is lost
}

// How a test server learns that it is not needed any more.
var (
	errStdinEnded = errors.New("stdin has ended: whoever started it holds the other end open for as long as it shall run")
	errParentGone = errors.New("the process that it belongs to is gone")
)

// parentInterval is the time between two looks for the parent.
const parentInterval = 250 * time.Millisecond

// watchParent calls end when the process with this pid, the parent for 0, is
// gone, and when stdin has ended, if that is a pipe: another file says nothing
// about who started this process. It watches until ctx ends; a read of stdin
// may outlast that.
func watchParent(ctx context.Context, end context.CancelCauseFunc, pid int, stdin io.Reader) error {
	gone, err := goneFunc(pid)
	if err != nil {
		return usagef("--parent %d: %w", pid, err)
	}
	go func() {
		tick := time.NewTicker(parentInterval)
		defer tick.Stop()
		for !gone() {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		end(errParentGone)
	}()
	if isPipe(stdin) {
		go func() {
			_, _ = io.Copy(io.Discard, stdin) // an error is an end, too
			end(errStdinEnded)
		}()
	}
	return nil
}

// isPipe reports whether the end of r tells of somebody's end.
func isPipe(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}
