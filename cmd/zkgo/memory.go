package main

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/zkgo/zkgo/server"
)

// collectBelow makes the runtime collect its garbage before that alone reaches
// the ceiling of bytes, unless GOMEMLIMIT says when.
func collectBelow(ceiling int64) {
	if ceiling > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(ceiling)
	}
}

// garbage is how much of it the heap may hold before it is collected, in percent
// of what lives. To collect takes a tenth of a second and half of two processors
// with two million znodes. The runtime's own 100 % would have a server that fills
// up do that every three seconds, and requests wait for it; what it costs is
// memory while there is load, and trimMemory gives that back.
const garbage = 150

// collectLater sets how much garbage there may be, unless GOGC says so.
func collectLater() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}

// lookEvery is how often it is looked whether the server has become quiet.
const lookEvery = time.Second

// quietRequests is how many requests a quiet server may have had since the last
// look: the pings of ten thousand clients.
const quietRequests = 2000

// trimMemory gives memory back whenever the server has become quiet. The
// runtime does so by itself only while it collects, and an idle program does
// not. It returns the function that ends it.
func trimMemory(s *server.Server) func() {
	var seen int64
	busy := true // starting was work
	return every(lookEvery, func() {
		handled := s.Load().Requests
		now := handled-seen > quietRequests
		if seen = handled; busy && !now && worthTrimming() {
			debug.FreeOSMemory()
		}
		busy = now
	})
}

// leastTrimmed is less memory than it is worth collecting for.
const leastTrimmed = 4 << 20

// worthTrimming reports whether an eighth of what lives could be given back.
// Since what looks like garbage may live, it is asked at the end of work only;
// since much has to be allocated before it says yes again, a server whose load
// comes in bursts does not collect after each of them.
func worthTrimming() bool {
	sample := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},                // after the last collection
		{Name: "/memory/classes/heap/objects:bytes"}, // that and what was allocated since
		{Name: "/memory/classes/heap/free:bytes"},    // could be returned to the system
	}
	metrics.Read(sample)
	live, objects, free := sample[0].Value.Uint64(), sample[1].Value.Uint64(), sample[2].Value.Uint64()
	spare := free + max(objects, live) - live
	return spare > max(leastTrimmed, live/8)
}
