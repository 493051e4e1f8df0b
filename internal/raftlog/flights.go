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

// maxFlights bounds how many writes to the log are under way.
const maxFlights = 4

// flights are the writes to the log that are under way, oldest first. They end in
// any order and land in their own: an entry has landed when it and all before it are
// on disk. What has not landed when the machine stops may be missing, also when
// something behind it is there; nobody was told of either.
//
// One goroutine launches at a time: who appends to the log. Any may wait.
type flights struct {
	health *health

	mu     sync.Mutex
	landed *sync.Cond
	air    []*flight
	spare  []*flight // their memory is used again
	failed error     // why one did not arrive: nothing lands any more
	closed bool

	pending atomic.Uint64 // first entry that has not landed, 0 when there is none
}

// flight is one write: a batch of entries and what else is in its blocks.
type flight struct {
	buf     []byte // memory of vfs.Blocks
	at      int64  // where it goes in the file
	first   uint64 // index of the first entry
	counted bool   // among the writes whose times are taken: who waits for it does not do that
	began   time.Time
	arrived bool
	after   *growth // has to be on disk before; nil: nothing
	growth  *growth // begins when this has arrived; nil: none
}

// write writes what is in it.
func (f *flight) write(w vfs.File) error {
	if err := f.after.await(); err != nil {
		return err
	}
	return vfs.WriteDurably(w, f.buf, f.at)
}

// maxSpare is how much memory of a flight is kept.
const maxSpare = 4 << 20

func newFlights(h *health) *flights {
	s := &flights{health: h}
	s.landed = sync.NewCond(&s.mu)
	return s
}

// board returns a flight with room for n bytes, once there are few enough in the air.
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

// depart takes a flight, which nobody may change any more, into the air.
func (s *flights) depart(f *flight) {
	f.began, f.arrived = time.Now(), false
	s.mu.Lock()
	defer s.mu.Unlock()
	s.air = append(s.air, f)
	s.noteOldest(f.counted)
}

// fly writes what departed and returns when it is on disk. Who waits for it to land
// calls settle or await.
func (s *flights) fly(w vfs.File, path string, f *flight) error {
	err := f.write(w)
	s.end(w, path, f, err)
	return err
}

// end ends a flight, and begins the growth that follows it.
func (s *flights) end(w vfs.File, path string, f *flight, err error) {
	growth := f.growth // who has arrived may depart again
	s.arrive(f, err)
	growth.start(s.health, w, path, err)
}

// launch has another goroutine fly. The store counts it among the calls that run, and
// learns from it what went wrong.
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

// arrive notes that a flight is over, and lands those for which nothing is missing any more.
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

// noteOldest publishes which flight is the oldest, and with timed when it began.
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

// has says whether an entry has landed, or was there before.
func (s *flights) has(index uint64) bool {
	first := s.pending.Load()
	return first == 0 || index < first
}

// await returns when an entry has landed, or false when it never will.
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

// settle returns when everything has landed, or why it never will.
func (s *flights) settle() error {
	if s.await(math.MaxUint64) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Errorf("the write before: %w", cmp.Or(s.failed, ErrClosed))
}

// close lets everybody go who waits for what the disk does not do.
func (s *flights) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.landed.Broadcast()
}
