package main

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/zkgo/zkgo/server"
)

// collectBelow makes the runtime collect garbage before garbage alone reaches the
// ceiling in bytes, unless GOMEMLIMIT is set.
func collectBelow(ceiling int64) {
	if ceiling > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(ceiling)
	}
}

// garbage is the GC percentage: a collection begins when the heap contains this much garbage
// relative to live data. A collection of two million znodes needs half of two processors for a
// tenth of a second. With the runtime's default of 100 %, a server that fills up would collect
// every three seconds and delay requests. We accept that the higher value costs memory under load,
// because trimMemory returns it afterwards.
const garbage = 150

// collectLater sets the GC percentage unless GOGC is set.
func collectLater() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}

// lookEvery is the interval between checks whether the server has become quiet.
const lookEvery = 5 * time.Second

// quietRequests is the maximum number of requests between two checks of a quiet
// server: the pings of ten thousand clients.
const quietRequests = 10_000

// trimMemory returns memory to the system whenever the server becomes quiet. We need it
// because the runtime returns memory only during a collection, and an idle program doesn't
// collect. The returned function stops trimMemory.
func trimMemory(s *server.Server) func() {
	var seen int64
	busy := true // the start counts as load
	return every(lookEvery, func() {
		handled := s.Requests()
		now := handled-seen > quietRequests
		if seen = handled; busy && !now && worthTrimming() {
			debug.FreeOSMemory()
		}
		busy = now
	})
}

// leastTrimmed is the minimum amount of memory that justifies a collection.
const leastTrimmed = 4 << 20

// worthTrimming reports whether at least an eighth of the live heap could be returned.
// Memory that looks like garbage may be live, so we call it only when load ends. It returns
// true again only after many allocations, so that a server with bursts of load doesn't
// collect after each burst.
func worthTrimming() bool {
	sample := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},                // after the last collection
		{Name: "/memory/classes/heap/objects:bytes"}, // live objects plus allocations since
		{Name: "/memory/classes/heap/free:bytes"},    // could be returned to the system
	}
	metrics.Read(sample)
	live, objects, free := sample[0].Value.Uint64(), sample[1].Value.Uint64(), sample[2].Value.Uint64()
	spare := free + max(objects, live) - live
	return spare > max(leastTrimmed, live/8)
}

// every calls look once per interval on one goroutine. The returned function stops
// it; after it returns, look isn't running and won't be called again.
func every(interval time.Duration, look func()) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				look()
			}
		}
	}()
	return func() { close(done); <-ended }
}
