package raftlog

import (
	"cmp"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/internal/vfs"
)

// maxFlights bounds the log writes in flight.
const maxFlights = 4

// flights are the log writes in flight, oldest first. They complete in any order, but
// land in log order: an entry has landed when it and all entries before it are on disk.
// If the machine stops, entries that haven't landed may be missing even if later ones are
// there; the store has acknowledged none of them.
//
// Only one goroutine launches at a time, the one that appends to the log. Any goroutine
// may wait.
type flights struct {
	health *health

	mu     sync.Mutex
	landed *sync.Cond
	air    []*flight
	spare  []*flight // kept for reuse of their memory
	failed error     // why a flight failed: no more flights land
	closed bool

	pending atomic.Uint64 // first entry that has not landed, 0 when there is none
}

// flight is one write: a batch of entries and everything else in its blocks.
type flight struct {
	buf     []byte // memory of vfs.Blocks
	at      int64  // offset in the file
	first   uint64 // index of the first entry
	counted bool   // whether its duration is observed here; false if a caller waits for it and does that
	began   time.Time
	arrived bool
	after   *growth // must be on disk before this write; nil: nothing
	growth  *growth // starts when this write has completed; nil: none
}

// write waits for the growth before it and writes the flight's blocks.
func (f *flight) write(w vfs.File) error {
	if err := f.after.await(); err != nil {
		return err
	}
	return vfs.WriteDurably(w, f.buf, f.at)
}

// maxSpare is the largest buffer that is kept for reuse.
const maxSpare = 4 << 20

func newFlights(h *health) *flights {
	s := &flights{health: h}
	s.landed = sync.NewCond(&s.mu)
	return s
}

// board returns a flight with room for n bytes, once fewer than maxFlights are in the
// air.
func (s *flights) board(n int) *flight {
	s.mu.Lock()
	for len(s.air) >= maxFlights && !s.over() {
		s.landed.Wait()
	}
	f := new(flight)
	if last := len(s.spare) - 1; last >= 0 {
		f, s.spare = s.spare[last], s.spare[:last]
	}
	s.mu.Unlock()
	if f.buf = f.buf[:0]; cap(f.buf) < n {
		f.buf = vfs.Blocks(n + n/4)
	}
	return f
}

// depart puts a flight, which must not change any more, into the air.
func (s *flights) depart(f *flight) {
	f.began, f.arrived = time.Now(), false
	s.mu.Lock()
	defer s.mu.Unlock()
	s.air = append(s.air, f)
	s.noteOldest(f.counted)
}

// fly writes a departed flight and returns when it is on disk. A caller that waits for it
// to land calls settle or await.
func (s *flights) fly(w vfs.File, path string, f *flight) error {
	err := f.write(w)
	s.end(w, path, f, err)
	return err
}

// end ends a flight, and starts the growth after it.
func (s *flights) end(w vfs.File, path string, f *flight, err error) {
	growth := f.growth // read it before arrive, which may recycle f
	s.arrive(f, err)
	growth.start(s.health, w, path, err)
}

// launch runs fly on another goroutine. The store counts that goroutine as a running
// call, and gets its error.
func (s *flights) launch(w vfs.File, path string, f *flight) error {
	if err := s.health.enter(); err != nil {
		s.end(w, path, f, err)
		return err
	}
	first := f.first
	go func() {
		err := s.fly(w, path, f)
		if err != nil {
			err = fmt.Errorf("%s: storing entries from log index %d: %w", path, first, err)
		}
		_ = s.health.leave(err)
	}()
	return nil
}

// arrive notes that a flight is over, and lands all flights that no longer wait for an
// earlier one.
func (s *flights) arrive(f *flight, err error) {
	var took [maxFlights]time.Duration
	n := 0
	s.mu.Lock()
	f.arrived = err == nil
	s.failed = cmp.Or(s.failed, err)
	for s.failed == nil && len(s.air) > 0 && s.air[0].arrived {
		if f := s.air[0]; f.counted {
			took[n] = time.Since(f.began)
			n++
		}
		if cap(s.air[0].buf) <= maxSpare {
			s.spare = append(s.spare, s.air[0])
		}
		s.air = append(s.air[:0], s.air[1:]...)
	}
	s.noteOldest(n > 0)
	s.mu.Unlock()
	s.landed.Broadcast()
	for _, d := range took[:n] {
		s.health.observe(d)
	}
}

// noteOldest publishes the first entry of the oldest flight, and if timed is set also its
// start time.
func (s *flights) noteOldest(timed bool) {
	var first uint64
	var began time.Time
	if len(s.air) > 0 {
		first, began = s.air[0].first, s.air[0].began
	}
	s.pending.Store(first)
	if timed {
		s.health.begins(logWrite, began)
	}
}

func (s *flights) over() bool { return s.failed != nil || s.closed }

// has reports whether an entry has landed, or was on disk before.
func (s *flights) has(index uint64) bool {
	first := s.pending.Load()
	return first == 0 || index < first
}

// await returns true when an entry has landed, or false if it never will.
func (s *flights) await(index uint64) bool {
	if s.has(index) {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.has(index) && !s.over() {
		s.landed.Wait()
	}
	return s.has(index)
}

// settle returns nil when all flights have landed, or an error if they never will.
func (s *flights) settle() error {
	if s.await(math.MaxUint64) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Errorf("the write before: %w", cmp.Or(s.failed, ErrClosed))
}

// close unblocks all goroutines that wait for a disk that doesn't respond.
func (s *flights) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.landed.Broadcast()
}
