package raftlog

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/zkgo/zkgo/internal/vfs"
)

// removals removes files and directories in the background. The operating system needs
// milliseconds to free the blocks of a 32 MiB segment, and on a busy server every
// snapshot makes half a dozen segments obsolete. A removal may also make the disk delay
// writes. We therefore remove in steps with pauses between them, until the store is
// closed.
//
// The files are no longer referenced. If the program stops first, we remove the rest when
// the store is opened again (removeUnknown, fileSnapshots.sweep).
type removals struct {
	fs    vfs.FS
	log   *slog.Logger
	limit time.Duration // how long wait waits
	hurry chan struct{} // closed by wait

	mu      sync.Mutex
	paths   []string // oldest first
	running bool
	done    sync.WaitGroup
}

// A removal pauses for removalRest times the duration of its last step, but at most for
// removalMost.
const (
	removalRest = 4
	removalMost = 50 * time.Millisecond
)

func newRemovals(o Options) *removals {
	return &removals{fs: o.FS, log: o.Logger, limit: o.StallLimit, hurry: make(chan struct{})}
}

// add schedules the removal of path.
func (r *removals) add(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paths = append(r.paths, path)
	if !r.running {
		r.running = true
		r.done.Go(r.run)
	}
}

// run removes files until none are left.
func (r *removals) run() {
	for path := r.next(); path != ""; path = r.next() {
		if err := vfs.RemoveInSteps(r.fs, path, r.rest); err != nil {
			r.log.Warn("a file that is no longer needed could not be removed", "file", path, "err", err)
		}
	}
}

// rest pauses between two steps. It returns false if the store is being closed.
func (r *removals) rest(worked time.Duration) bool {
	timer := time.NewTimer(min(removalRest*worked, removalMost))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.hurry:
		return false
	}
}

// next removes the oldest path from the queue and returns it. If the queue is empty, it
// ends the run and returns "".
func (r *removals) next() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.paths) == 0 {
		r.paths, r.running = nil, false
		return ""
	}
	path := r.paths[0]
	r.paths = r.paths[1:]
	return path
}

// wait returns when everything has been removed, or returns an error if the disk is too
// slow. It may be called only once, and add must not be called after it.
func (r *removals) wait() error {
	close(r.hurry)
	done := make(chan struct{})
	go func() {
		r.done.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(r.limit):
		return fmt.Errorf("files are still being removed after %v", r.limit)
	}
}
