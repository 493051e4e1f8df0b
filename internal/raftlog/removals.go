package raftlog

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/zkgo/zkgo/internal/vfs"
)

// removals removes files, and directories of files, in the background. The system
// takes milliseconds to free what a segment of 32 MiB occupies, and raft-wal asks for
// it while writes wait: with every snapshot of a busy server for half a dozen segments
// at once. The disk may let writes wait as well, so it is done in steps, and rested in
// between, until the store is closed.
//
// Nothing refers to the files any more. What a stop of the program leaves of
// them is removed when the store is opened again (segmentFiles.removeUnknown,
// fileSnapshots.sweep).
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

// removalRest is how many times as long as it has worked a removal rests, at most for
// removalMost.
const (
	removalRest = 4
	removalMost = 50 * time.Millisecond
)

func newRemovals(o Options) *removals {
	return &removals{fs: o.FS, log: o.Logger, limit: o.StallLimit, hurry: make(chan struct{})}
}

// add has path removed soon.
func (r *removals) add(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paths = append(r.paths, path)
	if !r.running {
		r.running = true
		r.done.Go(r.run)
	}
}

// run removes files until there are no more.
func (r *removals) run() {
	for path := r.next(); path != ""; path = r.next() {
		if err := vfs.RemoveInSteps(r.fs, path, r.rest); err != nil {
			r.log.Warn("a file that is no longer needed could not be removed", "file", path, "err", err)
		}
	}
}

// rest waits for a while, unless the store is being closed: then it returns false.
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

// next takes the oldest file, or ends the removing and returns "".
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

// wait returns when everything is removed, or with an error when the disk takes
// too long. Nothing may be added any more, and it is called once.
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
