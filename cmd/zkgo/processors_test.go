package main

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/server"
)

func TestLone(t *testing.T) {
	t.Parallel()
	before := server.Load{Requests: 1000, Entries: 500, Writes: 900}
	for name, c := range map[string]struct {
		then server.Load
		want bool
	}{
		"nothing":             {server.Load{}, false},
		"one writer":          {server.Load{Requests: 400, Entries: 400, Writes: 400}, true},
		"too few":             {server.Load{Requests: 10, Entries: 10, Writes: 10}, false},
		"a follower's":        {server.Load{Entries: 400, Writes: 400}, true},
		"reads now and then":  {server.Load{Requests: 600, Entries: 400, Writes: 400}, true},
		"more reads":          {server.Load{Requests: 900, Entries: 400, Writes: 400}, false},
		"three writers":       {server.Load{Requests: 600, Entries: 400, Writes: 600}, false},
		"two of them":         {server.Load{Requests: 400, Entries: 400, Writes: 400, Beside: 200}, false},
		"a second for once":   {server.Load{Requests: 400, Entries: 400, Writes: 400, Beside: 20}, true},
		"while it snapshots":  {server.Load{Requests: 400, Entries: 400, Writes: 400, Snapshot: true}, false},
		"counted from 0 anew": {server.Load{Requests: -900, Entries: -450, Writes: -850}, false},
	} {
		then := c.then
		then.Requests, then.Entries, then.Writes = then.Requests+before.Requests, then.Entries+before.Entries, then.Writes+before.Writes
		if got := lone(before, then); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// One processor after three intervals of a lone writer, all after the first that is
// none, and in the end.
func TestFitProcessors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var now server.Load
		var used []bool
		stop := fitProcessors(func() server.Load {
			mu.Lock()
			defer mu.Unlock()
			return now
		}, func(one bool) { used = append(used, one) })
		interval := func(writes, entries int64, want ...bool) {
			t.Helper()
			mu.Lock()
			now.Requests, now.Writes, now.Entries = now.Requests+writes, now.Writes+writes, now.Entries+entries
			mu.Unlock()
			time.Sleep(paceEvery)
			synctest.Wait()
			if !slices.Equal(used, want) {
				t.Errorf("after %v: %v, want %v", now, used, want)
			}
		}
		interval(400, 400)
		interval(400, 400)
		interval(0, 0)
		interval(400, 400)
		interval(400, 400)
		interval(400, 400, true)
		interval(400, 400, true)
		interval(400, 100, true, false)
		interval(400, 400, true, false)
		interval(400, 400, true, false)
		interval(400, 400, true, false, true)
		stop()
		if !slices.Equal(used, []bool{true, false, true, false}) {
			t.Errorf("in the end %v", used)
		}
	})
}

// Not parallel: it is about the whole process.
func TestProcessors(t *testing.T) {
	t.Setenv("GOMAXPROCS", "as it is")
	before := runtime.GOMAXPROCS(0)
	use := processors()
	use(true)
	if got := runtime.GOMAXPROCS(0); got != 1 {
		t.Errorf("one processor is %d", got)
	}
	use(false)
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("%d processors, and %d before", got, before)
	}
}
