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

// lineLog writes whole lines. It is safe for concurrent use.
type lineLog struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineLog) line(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintln(l.w, text) // a lost log line is no failure
}

// The reasons why a test server ends by itself.
var (
	errStdinEnded = errors.New("stdin was closed: keep the write end of the pipe open as long as the test server should run")
	errParentGone = errors.New("the process that started it has exited")
)

// parentInterval is the interval between two checks of the parent.
const parentInterval = 250 * time.Millisecond

// watchParent calls end when the process with this pid has ended; 0 means the parent.
// It also calls end at the end of stdin if stdin is a pipe; other files don't tell
// whether the process that started this one is alive. It watches until ctx ends, but a read of
// stdin may last longer.
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
			_, _ = io.Copy(io.Discard, stdin) // an error counts as the end, too
			end(errStdinEnded)
		}()
	}
	return nil
}

// isPipe reports whether the end of r means that the process at the other end has
// ended.
func isPipe(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}
