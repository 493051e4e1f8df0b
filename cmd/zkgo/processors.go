package main

import (
	"os"
	"runtime"
	"time"

	"github.com/zkgo/zkgo/server"
)

// paceEvery is how often it is looked how writes come.
const paceEvery = 100 * time.Millisecond

// loneWrites is how many writes an interval of paceEvery must have to count as one
// of a lone writer, and loneIntervals how many of those there must be in a row.
const (
	loneWrites    = 20
	loneIntervals = 3
)

// fitProcessors has all goroutines run on one processor while writes come one after
// the other and little else does, and on all of them otherwise. It returns the
// function that ends it.
//
// A write is handed from goroutine to goroutine, of which only one has something to
// do at a time, while the disk is waited for none. With a second processor at hand
// the runtime wakes a thread for it at every step, to look for work, which sometimes
// takes the next step away and always stands in the way of a client that shares the
// machine: without, a lone write takes a fifth less time and a quarter less of the
// processor. From two writers on the second processor is worth more.
func fitProcessors(load func() server.Load, use func(one bool)) func() {
	seen, one, intervals := load(), false, 0
	stop := every(paceEvery, func() {
		now := load()
		if intervals++; !lone(seen, now) {
			intervals = 0
		}
		seen = now
		if want := intervals >= loneIntervals; want != one {
			one = want
			use(one)
		}
	})
	return func() {
		if stop(); one {
			use(false)
		}
	}
}

// lone reports whether between two looks writes came one after the other: so many
// entries of the log for so many writes, and hardly ever two at a time. Many reads,
// and the writing of a snapshot, are work for another processor.
func lone(before, now server.Load) bool {
	entries, writes := now.Entries-before.Entries, now.Writes-before.Writes
	return entries >= loneWrites && writes*10 <= entries*11 && (now.Beside-before.Beside)*10 <= entries && now.Requests-before.Requests <= 2*writes && !now.Snapshot
}

// processors returns the function by which the runtime uses one processor, or again
// as many as it does now. Either stops all goroutines for some ten microseconds.
func processors() func(one bool) {
	all := runtime.GOMAXPROCS(0)
	return func(one bool) {
		if one {
			runtime.GOMAXPROCS(1)
		} else {
			restoreProcs(all)
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
