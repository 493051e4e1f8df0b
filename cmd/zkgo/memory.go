package main

import (
	"os"
	"runtime/debug"
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

// quietAfter is how long a server has to do nothing before its free memory goes
// back to the system.
const quietAfter = 15 * time.Second

// trimMemory gives memory back whenever the server has become quiet. The
// runtime does so by itself only while it collects, and an idle program does
// not. It returns the function that ends it.
func trimMemory(s *server.Server) func() {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(quietAfter)
		defer ticker.Stop()
		var seen int64
		trimmed := false
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			busy := s.Handled() - seen
			seen += busy
			switch {
			case busy > busyRequests:
				trimmed = false
			case !trimmed:
				debug.FreeOSMemory()
				trimmed = true
			}
		}
	}()
	return func() { close(done); <-ended }
}

// busyRequests is how many requests a quiet server may have had, pings mostly.
const busyRequests = 10000
