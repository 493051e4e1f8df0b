package main

import (
	"math"
	"os"
	"runtime"
	"time"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/server"
)

// paceEvery is the interval between two checks of the write load.
const paceEvery = 100 * time.Millisecond

// loneWrites is the minimum number of log entries per paceEvery that makes an
// interval meaningful. fitIntervals is the number of such intervals required for a
// decision: in a row for a lone writer, in total for crowded ones, because the ticks
// of the kernel's clock are too coarse for a single interval.
const (
	loneWrites   = 20
	fitIntervals = 3
)

// Thresholds, in processors, above which more than one processor is worthwhile: the
// time that other processes leave, and the part of it that this process uses. A
// process with one processor keeps it until the clearly… thresholds are exceeded.
const (
	enoughLeft, clearlyLeft = 1.3, 1.5
	enoughUsed, clearlyUsed = 0.6, 0.8
)

// The same thresholds for a server whose clients write and wait. On two processors it
// uses more time than others leave it, and on one it needs less.
const (
	waitersLeft, clearlyWaitersLeft = 1.9, 1.97
	waitersUsed, clearlyWaitersUsed = 0.95, 0.9
)

// longCommand is the processor time from which a command counts as long. crowd is the
// minimum number of commands per entry for the time to be that of the commands
// instead of the entry's.
const (
	longCommand = 15 * time.Microsecond
	crowd       = 64
)

// quickWrites is the minimum number of entries per paceEvery for which a processor
// that stays with a writing goroutine has no disadvantage.
const quickWrites = 100

// processors is the number of processors that the Go runtime uses.
type processors uint8

const (
	all  processors = iota // as many as the machine has
	one                    // one that stays with a goroutine that writes to the disk
	kept                   // one that runs other goroutines during the write
)

// givenUpFrom returns the size in bytes from which a durable write gives up its
// processor.
func (p processors) givenUpFrom() int {
	switch p {
	case one:
		return math.MaxInt // otherwise another thread would continue the write and compete with the load
	case kept:
		return 0
	}
	return vfs.LongWrite
}

// look is a sample of a server's load, taken every paceEvery.
type look struct {
	server.Load
	at   time.Time
	used time.Duration // processor time of this process
	idle time.Duration // total over all processors
	ok   bool          // used and idle are known
}

// fitProcessors runs all goroutines on one processor while that is faster, and on all
// processors otherwise. The returned function stops it.
//
// Goroutines pass a write from one to the next, and only a few of them have work at a
// time. With a second processor, the runtime wakes a thread at every step to look for
// work. That thread sometimes steals the next step, and it competes with other
// processes on the machine. With one writing client at a time, one processor makes a
// write a fifth faster and saves a quarter of its processor time. The same holds for
// up to some hundred clients of a standalone server that write and wait, on a machine
// of which they leave half: clients that get their reply send the next request
// immediately and then share a log entry, for which the server waits. If several
// servers share a machine with their clients, each of them gets about one processor
// anyway.
func fitProcessors(see func() look, use func(processors)) func() {
	f := fitter{use: use, seen: []look{see()}}
	stop := every(paceEvery, func() { f.fit(see()) })
	return func() {
		stop()
		f.set(all)
	}
}

// fitter decides how many processors to use.
type fitter struct {
	use  func(processors)
	now  processors
	seen []look // the latest samples, newest last
	lone int    // intervals in a row with a lone writer
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

// lone reports whether writes came one at a time between two samples: about as many
// log entries as writes, and hardly ever two concurrently. It returns false if there
// were many reads or a snapshot was written, because those can use another processor.
func lone(before, now server.Load) bool {
	entries, writes, _ := between(before, now)
	return entries >= loneWrites && writes*10 <= entries*11 && (now.Beside-before.Beside)*10 <= entries && writing(before, now)
}

// waiting reports whether, between two samples that are fitIntervals apart, the
// server did almost nothing but write one log entry after another for clients that
// wait for it and leave the rest of the machine idle. A snapshot doesn't matter: its
// writer runs for a ninth of the time, a quarter of a millisecond at a time.
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

// whileWritten returns the best use of processors for clients that wait. One
// processor stays with the writer of an entry if all clients wait for that entry, and
// runs other goroutines if the clients arrive at random. If the commands of an entry
// take much longer than its write, e.g. long multis, all processors are better.
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

// share returns the fraction of a processor that this process used between two
// samples, and the fraction that other processes left.
func share(before, now look) (used, left float64) {
	took := now.at.Sub(before.at).Seconds()
	used = (now.used - before.used).Seconds() / took
	return used, used + (now.idle-before.idle).Seconds()/took
}

// between returns the work that a server did between two samples.
func between(before, now server.Load) (entries, writes, requests int64) {
	return now.Entries - before.Entries, now.Writes - before.Writes, now.Requests - before.Requests
}

// writing reports whether most of the work was writes.
func writing(before, now server.Load) bool {
	return now.Requests-before.Requests <= 2*(now.Writes-before.Writes) && !now.Snapshot
}

// crowded reports whether, between two samples that are fitIntervals apart, other
// processes left about one processor to this process, which used part of it to write.
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

// looks returns a function that samples a server's load. It reads the processor times
// only when they matter, because the kernel sums up all interrupts for each read.
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

// setProcessors returns a function that sets the number of processors. A change stops
// all goroutines for about ten microseconds. gather is the server's.
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

// restoreProcs restores the runtime's number of processors. Unless GOMAXPROCS is set,
// the number follows the container's limits.
func restoreProcs(n int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.SetDefaultGOMAXPROCS()
	} else {
		runtime.GOMAXPROCS(n)
	}
}
