package server

import (
	"errors"
	"log/slog"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// The memory ceiling. If a tree grows without bound, the system kills the server and
// then the next one, which holds the same tree. So above fullPercent of the ceiling the
// server refuses every write that would make the tree grow, with QuotaExceeded, until
// there is room again. Reads, deletes, sessions, and writes that don't make a znode's
// data longer continue.
//
// A server refuses writes of its own clients by its own memory. A leader refuses the
// writes of all clients by its memory: the log records its decision with each batch, so
// all servers act alike.
//
// Only live memory counts, not garbage; otherwise a heap of half the ceiling would
// refuse writes between two collections. The live size is known after a collection, so
// near the ceiling the guard asks for one.
//
// The guard checks periodically, and whenever so much was written that there may be no
// room for more: between two periodic checks, clients can write more than a small
// ceiling holds.
const (
	fullPercent  = 90 // of the ceiling: writes are refused from here
	againPercent = 85 // and accepted again below this
	freshPercent = 5  // of the ceiling: garbage or growth that is worth a collection
	leastPercent = 1  // of the ceiling: written before the next check, at least
	copies       = 4  // of a write in the heap until a collection

	memoryEvery = 200 * time.Millisecond // between two periodic checks
	seldomEvery = time.Second            // while less than fewPercent of the ceiling is used
	fewPercent  = 25
	fullEvery   = 5 * time.Second // between collections while memory is full
	// shedPatience is how long it may take until the memory of closed clients is found
	// to be free.
	shedPatience = time.Second
	gcShare      = 20 // the next collection comes after at least this many times the length of the last
)

// memoryUse is the memory of a process, in bytes.
type memoryUse struct {
	live int64 // live at the end of the latest collection
	heap int64 // live, garbage, or allocated since
	rest int64 // stacks and runtime overhead
}

// memoryGuard enforces the ceiling.
type memoryGuard struct {
	ceiling int64
	log     *slog.Logger
	read    func() memoryUse
	collect func()
	clock   func() time.Time
	shed    func() bool // closes the clients that hold the most; false: they hold little

	full    atomic.Bool
	used    atomic.Int64
	refused atomic.Int64

	written atomic.Int64  // bytes since the latest check
	room    atomic.Int64  // bytes that may be written before the next check
	poke    chan struct{} // signals that a check is due

	nextFresh, nextRoom time.Time // earliest next collections; only the guard's goroutine uses them
	shedUntil           time.Time // until then, the memory of closed clients may still be uncollected
}

func newMemoryGuard(ceiling int64, log *slog.Logger) *memoryGuard {
	g := &memoryGuard{ceiling: ceiling, log: log, read: readMemory, collect: runtime.GC, clock: time.Now, shed: func() bool { return false }, poke: make(chan struct{}, 1)}
	g.room.Store(g.part(leastPercent))
	return g
}

// wrote counts the bytes that a transaction adds.
func (g *memoryGuard) wrote(bytes int) {
	if g.written.Add(int64(bytes)) < g.room.Load() {
		return
	}
	select {
	case g.poke <- struct{}{}:
	default:
	}
}

// readMemory reads the runtime's metrics.
func readMemory() memoryUse {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(s)
	v := func(i int) int64 { return int64(s[i].Value.Uint64()) }
	return memoryUse{live: v(0), heap: v(1), rest: v(2) - v(1) - v(3) - v(4) - v(5)}
}

// watchMemory checks the memory until the server closes.
func (s *Server) watchMemory() {
	timer := time.NewTimer(memoryEvery)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.memory.poke:
		case <-s.done:
			return
		}
		s.memory.look()
		pause := memoryEvery
		if s.memory.used.Load() < s.memory.part(fewPercent) {
			pause = seldomEvery
		}
		timer.Reset(pause)
	}
}

// look decides whether the server refuses writes.
func (g *memoryGuard) look() {
	g.written.Store(0)
	u := g.read()
	if g.worthCollecting(u) {
		began := g.clock()
		g.collect()
		now := g.clock()
		took := now.Sub(began)
		g.nextFresh, g.nextRoom = now.Add(gcShare*took), now.Add(max(fullEvery, gcShare*took))
		u = g.read()
	}
	used := u.live + u.rest
	g.used.Store(used)
	g.room.Store(max(g.part(leastPercent), (g.part(fullPercent)-u.heap-u.rest)/copies))
	over := used >= g.part(fullPercent) || u.heap+u.rest >= g.ceiling
	if over && g.sheds() {
		return
	}
	switch full := g.full.Load(); {
	case !full && over:
		g.full.Store(true)
		g.log.Error("memory is nearly used up: writes that need more are refused with QuotaExceeded", "used", used, "memoryCeiling", g.ceiling)
	case full && used < g.part(againPercent) && u.heap+u.rest < g.ceiling:
		g.full.Store(false)
		g.log.Info("there is memory again: writes are taken", "used", used, "memoryCeiling", g.ceiling, "refused", g.refused.Load())
	}
}

// sheds closes the clients that hold the most memory before the server refuses the
// writes of all clients. It reports whether that may make room.
func (g *memoryGuard) sheds() bool {
	now := g.clock()
	if g.shed() {
		g.shedUntil = now.Add(shedPatience)
		g.nextFresh, g.nextRoom = now, now
	}
	return now.Before(g.shedUntil)
}

// worthCollecting reports whether the guard needs the live size: because the heap is
// near the ceiling, or to find out whether deletes have made room.
func (g *memoryGuard) worthCollecting(u memoryUse) bool {
	now := g.clock()
	if g.full.Load() && !now.Before(g.nextRoom) {
		return true
	}
	return u.heap+u.rest >= g.part(fullPercent) && u.heap-u.live >= g.part(freshPercent) && !now.Before(g.nextFresh)
}

// errNoRoom aborts a restore.
var errNoRoom = errors.New("the state that is to be restored and the present one do not fit below memoryCeiling: raise it, or restore into a new server with zkgo restore")

// roomToRestore returns an error if the process has no room for more of a state that is
// being read. Much of the heap may be garbage of the decoder, so a collection decides.
func (g *memoryGuard) roomToRestore() error {
	if g == nil || g.ceiling <= 0 {
		return nil
	}
	if u := g.read(); u.heap+u.rest < g.part(fullPercent) {
		return nil
	}
	g.collect()
	if u := g.read(); u.live+u.rest < g.part(fullPercent) {
		return nil
	}
	return errNoRoom
}

func (g *memoryGuard) part(percent int64) int64 { return g.ceiling / 100 * percent }

// refuses reports whether a write that brings this is refused for lack of memory. It is
// called only while memory is full.
func (g *memoryGuard) refuses(s *Server, req proto.Record, brings content) bool {
	if brings&growth == 0 {
		return false
	}
	if q, ok := req.(*proto.SetDataRequest); ok && !s.grows(q.Path, len(q.Data)) {
		return false
	}
	g.refused.Add(1)
	return true
}

// grows reports whether n bytes are more than the znode at path has.
func (s *Server) grows(path string, n int) bool {
	s.tree.RLock()
	defer s.tree.RUnlock()
	have := s.tree.Get(path)
	return have == nil || n > len(have.Data())
}
