package limits

import (
	"log/slog"
	"testing"
	"time"
)

// We should decide by live memory, with a margin between refusing and accepting again.
// Garbage should not count, but the guard should collect before garbage fills the memory.
func TestMemoryGuard(t *testing.T) {
	t.Parallel()
	var u MemoryUse
	collected, after := 0, int64(0)
	now := time.Unix(1000, 0)
	g := NewMemory(1000, slog.New(slog.DiscardHandler))
	g.Read = func() MemoryUse { return u }
	g.Clock = func() time.Time { return now }
	g.Collect = func() { collected++; u.Live, u.Heap = after, after; now = now.Add(100 * time.Millisecond) }
	for i, step := range []struct {
		use       MemoryUse
		after     int64 // live memory, if a collection runs
		wait      time.Duration
		full      bool
		collected int
	}{
		{MemoryUse{Live: 500, Heap: 800, rest: 50}, 0, 0, false, 0},
		{MemoryUse{Live: 500, Heap: 900, rest: 50}, 600, 0, false, 1},                // garbage, as a collection shows
		{MemoryUse{Live: 500, Heap: 900, rest: 50}, 600, 0, false, 1},                // no second collection so soon
		{MemoryUse{Live: 500, Heap: 950, rest: 50}, 600, 0, true, 1},                 // but no further
		{MemoryUse{Live: 500, Heap: 900, rest: 50}, 600, 10 * time.Second, false, 2}, // it was garbage
		{MemoryUse{Live: 600, Heap: 900, rest: 50}, 860, 10 * time.Second, true, 3},  // now it is live
		{MemoryUse{Live: 840, Heap: 840, rest: 50}, 840, 0, true, 3},                 // not enough room
		{MemoryUse{Live: 840, Heap: 840, rest: 50}, 780, 4 * time.Second, true, 3},   // deletes have made room, which the guard doesn't know
		{MemoryUse{Live: 840, Heap: 840, rest: 50}, 780, 2 * time.Second, false, 4},  // until the next collection
		{MemoryUse{Live: 840, Heap: 840, rest: 50}, 780, 0, false, 4},                // below the threshold for refusing
		{MemoryUse{Live: 870, Heap: 870, rest: 50}, 870, 0, true, 4},
	} {
		u, after = step.use, step.after
		now = now.Add(step.wait)
		g.Check()
		if g.Full.Load() != step.full || collected != step.collected {
			t.Errorf("step %d: full %v, %d collections; want %v, %d", i, g.Full.Load(), collected, step.full, step.collected)
		}
	}
}

// The guard should not wait for its next periodic check if the writes since the last one
// may have filled the memory. The less memory is left, the sooner it should check.
func TestMemoryIsCheckedAfterManyWrites(t *testing.T) {
	t.Parallel()
	var u MemoryUse
	g := NewMemory(1000, slog.New(slog.DiscardHandler))
	g.Read = func() MemoryUse { return u }
	g.Collect = func() {}
	poked := func() bool {
		select {
		case <-g.poke:
			return true
		default:
			return false
		}
	}
	for _, step := range []struct{ use, room int64 }{{100, 200}, {500, 100}, {860, 10}, {990, 10}} {
		u = MemoryUse{Live: step.use, Heap: step.use}
		g.Check()
		if g.Wrote(int(step.room - 1)); poked() {
			t.Errorf("with %d in use: a check after %d bytes", step.use, step.room-1)
		}
		g.Wrote(1)
		g.Wrote(1)
		if !poked() || poked() {
			t.Errorf("with %d in use: not one check after %d bytes", step.use, step.room)
		}
	}
}

func TestReadMemory(t *testing.T) {
	t.Parallel()
	if u := readMemory(); u.Heap <= 0 || u.rest <= 0 || u.Live < 0 {
		t.Errorf("%+v", u)
	}
}
