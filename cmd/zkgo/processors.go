package main

import (
	"math"
	"os"
	"runtime"
	"time"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/server"
)

// paceEvery is how often it is looked how writes come.
const paceEvery = 100 * time.Millisecond

// loneWrites is how many entries of the log an interval of paceEvery must have for the
// writes in them to say something, and fitIntervals how many of those it takes: of a
// lone writer in a row, of crowded ones together, for ticks of the kernel's clock are
// too coarse for one.
const (
	loneWrites   = 20
	fitIntervals = 3
)

// How much of a processor there must be for more than one to be worth it: what the
// others on the machine leave, and what this process takes of that. A process that has
// one processor keeps it until there is clearly more.
const (
	enoughLeft, clearlyLeft = 1.3, 1.5
	enoughUsed, clearlyUsed = 0.6, 0.8
)

// The same for a server whose clients write and wait: it takes more than others leave it
// on two processors, and with one of them it needs less.
const (
	waitersLeft, clearlyWaitersLeft = 1.9, 1.97
	waitersUsed, clearlyWaitersUsed = 0.95, 0.9
)

// longCommand is the processor time of commands that take long, and crowd how many of
// them there must be in an entry for that to be theirs, and not the entry's.
const (
	longCommand = 15 * time.Microsecond
	crowd       = 64
)

// quickWrites is how many entries an interval of paceEvery must have for a processor that
// stays with a goroutine that writes to be missed by nobody.
const quickWrites = 100

// processors is how many of the Go runtime's processors there are.
type processors uint8

const (
	all  processors = iota // as many as the machine has
	one                    // which stays with a goroutine that writes to the disk
	kept                   // one, which goes on to other goroutines meanwhile
)

// givenUpFrom is from how many bytes on a durable write gives up its processor.
func (p processors) givenUpFrom() int {
	switch p {
	case one:
		return math.MaxInt // a thread elsewhere that goes on with it would share that processor with the load
	case kept:
		return 0
	}
	return vfs.LongWrite
}

// look is what is seen of a server every paceEvery.
type look struct {
	server.Load
	at   time.Time
	used time.Duration // processor time of this process
	idle time.Duration // of all processors, together
	ok   bool          // the two before are known
}

// fitProcessors has all goroutines run on one processor while that is better, and on
// all of them otherwise. It returns the function that ends it.
//
// A write is handed from goroutine to goroutine, of which only few have something to
// do at a time. With a second processor at hand the runtime wakes a thread for it at
// every step, to look for work, which sometimes takes the next step away, and stands
// in the way of others that share the machine. Where one client writes at a time a
// write takes a fifth less time with one processor, and a quarter less of it. The same
// holds for up to some hundred clients of a server without an ensemble that write and
// wait, on a machine that they leave half of: those who come back as soon as they are
// answered then share an entry of the log, for which they are waited for. Where several
// servers share a machine with their clients, one processor is what each gets anyway.
func fitProcessors(see func() look, use func(processors)) func() {
	f := fitter{use: use, seen: []look{see()}}
	stop := every(paceEvery, func() { f.fit(see()) })
	return func() {
		stop()
		f.set(all)
	}
}

// fitter decides about the processors.
type fitter struct {
	use  func(processors)
	now  processors
	seen []look // the last ones, the newest at the end
	lone int    // intervals with a lone writer, in a row
}

func (f *fitter) fit(now look) {
	if f.lone++; !lone(f.seen[len(f.seen)-1].Load, now.Load) {
		f.lone = 0
	}
	if f.seen = append(f.seen, now); len(f.seen) > fitIntervals+1 {
		f.seen = append(f.seen[:0], f.seen[1:]...)
	}
	switch {
	case f.lone >= fitIntervals:
		f.set(one)
	case len(f.seen) > fitIntervals && waiting(f.seen[0], now, f.now != all):
		f.set(whileWritten(f.seen[0], now))
	case len(f.seen) > fitIntervals && crowded(f.seen[0], now, f.now != all):
		f.set(kept)
	default:
		f.set(all)
	}
}

func (f *fitter) set(p processors) {
	if p != f.now {
		f.now = p
		f.use(p)
	}
}

// lone reports whether between two looks writes came one after the other: so many
// entries of the log for so many writes, and hardly ever two at a time. Many reads,
// and the writing of a snapshot, are work for another processor.
func lone(before, now server.Load) bool {
	entries, writes, _ := between(before, now)
	return entries >= loneWrites && writes*10 <= entries*11 && (now.Beside-before.Beside)*10 <= entries && writing(before, now)
}

// waiting reports whether between two looks, fitIntervals apart, next to nothing was to be
// done but write one entry of the log and then the next, for clients that wait for them
// and leave the rest of the machine free. A snapshot does not count: its writer works for
// a ninth of the time, a quarter of a millisecond in a row.
func waiting(before, now look, already bool) bool {
	entries, writes, requests := between(before.Load, now.Load)
	if !now.Alone || !before.ok || !now.ok || entries < fitIntervals*quickWrites || requests > 3*writes {
		return false
	}
	used, left := share(before, now)
	if already {
		return used < clearlyWaitersUsed && left < clearlyWaitersLeft
	}
	return used < waitersUsed && left < waitersLeft
}

// whileWritten is how one processor is best used by clients that wait: it stays with who
// writes an entry when all of them wait for that one, and goes on to the others when those
// come at times of their own. Where the commands of an entry take much longer than its
// write, as those of long multis do, both processors are better used.
func whileWritten(before, now look) processors {
	entries, writes, _ := between(before.Load, now.Load)
	switch {
	case writes >= crowd*entries && now.used-before.used > time.Duration(writes)*longCommand:
		return all
	case now.Returning:
		return one
	}
	return kept
}

// share is how much of a processor this process took between two looks, and how much the
// others left it.
func share(before, now look) (used, left float64) {
	took := now.at.Sub(before.at).Seconds()
	used = (now.used - before.used).Seconds() / took
	return used, used + (now.idle-before.idle).Seconds()/took
}

// between is what a server did between two looks.
func between(before, now server.Load) (entries, writes, requests int64) {
	return now.Entries - before.Entries, now.Writes - before.Writes, now.Requests - before.Requests
}

// writing reports whether writes were most of what was to be done.
func writing(before, now server.Load) bool {
	return now.Requests-before.Requests <= 2*(now.Writes-before.Writes) && !now.Snapshot
}

// crowded reports whether between two looks, fitIntervals apart, the others on the
// machine left this process about one processor, of which it took a part to write.
func crowded(before, now look, already bool) bool {
	if !before.ok || !now.ok || now.Entries-before.Entries < fitIntervals*loneWrites || !writing(before.Load, now.Load) {
		return false
	}
	used, left := share(before, now)
	if already {
		return used < clearlyUsed && left < clearlyLeft
	}
	return used < enoughUsed && left < enoughLeft
}

// looks returns the function that sees what a server has been doing. It asks for the
// processors' times only where they matter: the kernel counts all its interrupts for
// an answer.
func looks(load func() server.Load, times func() (used, idle time.Duration, ok bool)) func() look {
	seen := load()
	return func() look {
		l := look{Load: load(), at: time.Now()}
		if l.Entries-seen.Entries >= loneWrites {
			l.used, l.idle, l.ok = times()
		}
		seen = l.Load
		return l
	}
}

// setProcessors returns the function by which the runtime uses so many processors.
// That stops all goroutines for some ten microseconds. gather is the server's.
func setProcessors(gather func(bool)) func(processors) {
	most := runtime.GOMAXPROCS(0)
	return func(p processors) {
		vfs.GiveUpProcessor(p.givenUpFrom())
		gather(p != all)
		if p == all {
			restoreProcs(most)
		} else {
			runtime.GOMAXPROCS(1)
		}
	}
}

// restoreProcs sets the number of the runtime's processors to what it was. Unless
// somebody has set it, it follows the limits of the container.
func restoreProcs(n int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.SetDefaultGOMAXPROCS()
	} else {
		runtime.GOMAXPROCS(n)
	}
}
