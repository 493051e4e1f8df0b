package raftlog

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed is returned by every call on a closed store, except GetLog and Set, which end
// the goroutine.
var ErrClosed = errors.New("log store is closed")

// health tracks whether the disk under a store works: it latches the first error, counts
// running calls and times writes.
type health struct {
	log    *slog.Logger
	failed chan error    // gets the first error; buffered
	closed chan struct{} // closed by Close

	mu      sync.Mutex
	err     error
	closing bool
	running int
	idle    chan struct{} // non-nil while Close waits; closed when running is 0

	base time.Time
	// Start of the running write in each class, in nanoseconds after base plus one; 0 if
	// none runs. Writes of a class are serial.
	started [2]atomic.Int64

	observer atomic.Pointer[func(time.Duration)]
}

// The classes of writes that stop heartbeats when they hang. Snapshots don't count,
// because a leader can lead while one is slow.
const (
	logWrite = iota
	voteWrite
)

func newHealth(log *slog.Logger) *health {
	return &health{
		log:    log,
		failed: make(chan error, 1),
		closed: make(chan struct{}),
		base:   time.Now(),
	}
}

// enter admits a call. While an error is latched it blocks until the store is closed, and
// then returns that error.
func (h *health) enter() error {
	h.mu.Lock()
	switch {
	case h.err != nil:
		err := h.err
		h.mu.Unlock()
		<-h.closed
		return err
	case h.closing:
		h.mu.Unlock()
		return ErrClosed
	}
	h.running++
	h.mu.Unlock()
	return nil
}

// leave ends a call that enter admitted. If a call failed, or ran while another call
// failed, it must not acknowledge anything, so we block it until Close.
func (h *health) leave(err error) error {
	if err != nil {
		h.fail(err)
	}
	h.mu.Lock()
	h.running--
	if h.running == 0 && h.idle != nil {
		close(h.idle)
		h.idle = nil
	}
	err = h.err
	h.mu.Unlock()
	if err != nil {
		<-h.closed
	}
	return err
}

// task is a part of a write that continues in the background.
type task struct {
	done chan struct{} // closed when err is set
	err  error
}

// background runs f on its own goroutine as a part of the running call, so Close waits for
// it, too.
func (h *health) background(f func() error) *task {
	h.mu.Lock()
	h.running++
	h.mu.Unlock()
	t := &task{done: make(chan struct{})}
	go func() {
		t.err = f()
		close(t.done)
		_ = h.leave(t.err)
	}()
	return t
}

// wait returns the result of a task. A nil task is done.
func (t *task) wait() error {
	if t == nil {
		return nil
	}
	<-t.done
	return t.err
}

// orEnd returns nil or not at all. If the guarded call failed, Raft would panic and crash
// the embedding program. The goroutine waits for Close like all others, and ends there.
// The same applies to a call after Close: if the disk hung for too long, we have
// abandoned the Raft instance, but it continues when the disk does.
func (h *health) orEnd(err error) error {
	if err != nil {
		<-h.closed
		runtime.Goexit()
	}
	return nil
}

// fail latches the first error.
func (h *health) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil || h.closing {
		return
	}
	h.err = fmt.Errorf("log store failed, nothing more will be acknowledged: %w", err)
	h.log.Error("log store failed; nothing more will be acknowledged", "err", err)
	h.failed <- h.err
}

// close unblocks calls and waits up to limit for running ones. If they need longer, late
// is closed when the last one has returned.
func (h *health) close(limit time.Duration) (late <-chan struct{}, err error) {
	h.mu.Lock()
	h.closing = true
	var idle chan struct{}
	if h.running > 0 {
		idle = make(chan struct{})
		h.idle = idle
	}
	h.mu.Unlock()
	close(h.closed)
	if idle == nil {
		return nil, nil
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-idle:
		return nil, nil
	case <-timer.C:
		return idle, fmt.Errorf("log store: a call has been running for more than %v, its files are closed when it returns", limit)
	}
}

func (h *health) healthy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err == nil
}

// write runs and times one write that ends in an fsync.
func (h *health) write(class int, f func() error) error {
	begin := time.Now()
	h.started[class].Store(int64(begin.Sub(h.base)) + 1)
	err := f()
	h.started[class].Store(0)
	if f := h.observer.Load(); f != nil && err == nil {
		(*f)(time.Since(begin))
	}
	return err
}

// oldest returns the age of the oldest running write.
func (h *health) oldest() time.Duration {
	var age time.Duration
	now := time.Since(h.base)
	for i := range h.started {
		if s := h.started[i].Load(); s != 0 {
			age = max(age, now-time.Duration(s-1))
		}
	}
	return age
}
