package limits

import (
	"errors"
	"log/slog"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// The memory ceiling. If a tree grows without bound, the system kills the server and then
// the next one, which has the same tree. Above fullPercent of the ceiling, we therefore
// refuse every write that would make the tree grow, with QuotaExceeded, until there is
// enough memory again. Reads, deletes, sessions, and writes that don't make a znode's data
// longer continue.
//
// Each server refuses its clients' writes if its own memory is full. The leader refuses the
// writes of all clients if its memory is full: we record its decision in the log with each
// batch, so that all servers act alike.
//
// We count only live memory, not garbage: otherwise we would refuse writes between two
// collections with a heap of half the ceiling. We know the live size only after a
// collection, so near the ceiling the guard forces one.
//
// The guard checks periodically, and also when clients have written so much that the memory
// may be full: between two periodic checks, clients can write more than a small ceiling
// allows.
const (
	fullPercent  = 90 // of the ceiling: we refuse writes above this
	againPercent = 85 // and accept them again below this
	freshPercent = 5  // of the ceiling: garbage or growth that is worth a collection
	leastPercent = 1  // of the ceiling: written before the next check, at least
	copies       = 4  // of a write in the heap until a collection

	memoryEvery = 200 * time.Millisecond // between two periodic checks
	seldomEvery = time.Second            // while less than fewPercent of the ceiling is used
	fewPercent  = 25
	fullEvery   = 5 * time.Second // between collections while memory is full
	// ShedPatience is how long we wait until we know that the memory of closed clients is
	// free.
	ShedPatience = time.Second
	gcShare      = 20 // the next collection comes after at least this many times the length of the last
)

// MemoryUse is the memory of a process, in bytes.
type MemoryUse struct {
	Live int64 // live at the end of the latest collection
	Heap int64 // live, garbage, or allocated since
	rest int64 // stacks and runtime overhead
}

// Memory enforces the ceiling.
type Memory struct {
	Ceiling int64
	log     *slog.Logger
	Read    func() MemoryUse // this and the next two call the runtime, except in tests
	Collect func()
	Clock   func() time.Time
	Shed    func() bool // closes the clients that use the most; false: they use little

	Full    atomic.Bool  // writes that need memory are refused
	Used    atomic.Int64 // bytes at the latest check
	Refused atomic.Int64 // writes; the server counts them

	written atomic.Int64  // bytes since the latest check
	room    atomic.Int64  // bytes that may be written before the next check
	poke    chan struct{} // signals that a check is due

	nextFresh, nextRoom time.Time // earliest next collections; only the guard's goroutine uses them
	shedUntil           time.Time // until then, the memory of closed clients may still be uncollected
}

// NewMemory returns a Memory that reads the runtime's metrics; it acts once Watch runs.
func NewMemory(ceiling int64, log *slog.Logger) *Memory {
	g := &Memory{Ceiling: ceiling, log: log, Read: readMemory, Collect: runtime.GC, Clock: time.Now, Shed: func() bool { return false }, poke: make(chan struct{}, 1)}
	g.room.Store(g.Percent(leastPercent))
	return g
}

// Wrote counts the bytes that a transaction adds.
func (g *Memory) Wrote(bytes int) {
	if g.written.Add(int64(bytes)) < g.room.Load() {
		return
	}
	select {
	case g.poke <- struct{}{}:
	default:
	}
}

// readMemory reads the runtime's metrics.
func readMemory() MemoryUse {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(s)
	v := func(i int) int64 { return int64(s[i].Value.Uint64()) }
	return MemoryUse{Live: v(0), Heap: v(1), rest: v(2) - v(1) - v(3) - v(4) - v(5)}
}

// Watch checks the memory until done is closed. untilNext returns how long to wait for the
// next check if it is due every d.
func (g *Memory) Watch(done <-chan struct{}, untilNext func(d time.Duration) time.Duration) {
	timer := time.NewTimer(memoryEvery)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-g.poke:
		case <-done:
			return
		}
		g.Check()
		pause := memoryEvery
		if g.Used.Load() < g.Percent(fewPercent) {
			pause = seldomEvery
		}
		timer.Reset(untilNext(pause))
	}
}

// Check decides whether the server refuses writes.
func (g *Memory) Check() {
	g.written.Store(0)
	u := g.Read()
	if g.worthCollecting(u) {
		began := g.Clock()
		g.Collect()
		now := g.Clock()
		took := now.Sub(began)
		g.nextFresh, g.nextRoom = now.Add(gcShare*took), now.Add(max(fullEvery, gcShare*took))
		u = g.Read()
	}
	used := u.Live + u.rest
	g.Used.Store(used)
	g.room.Store(max(g.Percent(leastPercent), (g.Percent(fullPercent)-u.Heap-u.rest)/copies))
	over := used >= g.Percent(fullPercent) || u.Heap+u.rest >= g.Ceiling
	if over && g.sheds() {
		return
	}
	switch full := g.Full.Load(); {
	case !full && over:
		g.Full.Store(true)
		g.log.Error("memory is nearly used up: rejecting writes that need more with QuotaExceeded", "used", used, "memoryCeiling", g.Ceiling)
	case full && used < g.Percent(againPercent) && u.Heap+u.rest < g.Ceiling:
		g.Full.Store(false)
		g.log.Info("memory is available again: accepting writes", "used", used, "memoryCeiling", g.Ceiling, "refused", g.Refused.Load())
	}
}

// sheds closes the clients that use the most memory before the server refuses the writes of
// all clients. It reports whether that may make room.
func (g *Memory) sheds() bool {
	now := g.Clock()
	if g.Shed() {
		g.shedUntil = now.Add(ShedPatience)
		g.nextFresh, g.nextRoom = now, now
	}
	return now.Before(g.shedUntil)
}

// worthCollecting reports whether the guard needs the live size: because the heap is
// near the ceiling, or to find out whether deletes have made room.
func (g *Memory) worthCollecting(u MemoryUse) bool {
	now := g.Clock()
	if g.Full.Load() && !now.Before(g.nextRoom) {
		return true
	}
	return u.Heap+u.rest >= g.Percent(fullPercent) && u.Heap-u.Live >= g.Percent(freshPercent) && !now.Before(g.nextFresh)
}

// errNoRoom aborts a restore that doesn't fit into memory.
var errNoRoom = errors.New("the restored and the current state together exceed memoryCeiling: raise it, or restore into a new server with zkgo restore")

// RoomToRestore returns an error if there is not enough memory for more of a state that we
// are reading. Much of the heap may be garbage of the decoder, so we collect before we
// decide.
func (g *Memory) RoomToRestore() error {
	if g == nil || g.Ceiling <= 0 {
		return nil
	}
	if u := g.Read(); u.Heap+u.rest < g.Percent(fullPercent) {
		return nil
	}
	g.Collect()
	if u := g.Read(); u.Live+u.rest < g.Percent(fullPercent) {
		return nil
	}
	return errNoRoom
}

// Percent returns a percentage of the ceiling, in bytes.
func (g *Memory) Percent(percent int64) int64 { return g.Ceiling / 100 * percent }
