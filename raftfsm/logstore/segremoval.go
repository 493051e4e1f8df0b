package logstore

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/zkgo/zkgo/raftfsm/disk"
)

// removals removes files in the background. The system takes milliseconds to
// free what a segment of 32 MiB occupies, and raft-wal asks for it while writes
// wait: with every snapshot of a busy server for half a dozen segments at once.
//
// Nothing refers to the files any more. What a stop of the program leaves of
// them is removed when the log is opened again (segmentFiles.removeUnknown).
type removals struct {
	fs    disk.FS
	log   *slog.Logger
	limit time.Duration // how long wait waits

	mu      sync.Mutex
	paths   []string // oldest first
	running bool
	done    sync.WaitGroup
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
		if err := r.fs.Remove(path); err != nil {
			r.log.Warn("log: a segment that is no longer needed could not be removed", "file", path, "err", err)
		}
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
// too long. Nothing may be added any more.
func (r *removals) wait() error {
	done := make(chan struct{})
	go func() {
		r.done.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(r.limit):
		return fmt.Errorf("log: segments are still being removed after %v", r.limit)
	}
}
