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

// TestFitProcessors expects one processor after three intervals with a lone writer,
// and all processors after the first interval without one and at the end. On a
// crowded machine, a single such interval isn't enough.
func TestFitProcessors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now := look{ok: true}
		var used []processors
		stop := fitProcessors(func() look {
			mu.Lock()
			defer mu.Unlock()
			now.at = time.Now()
			return now
		}, func(p processors) { used = append(used, p) })
		interval := func(writes, entries int64, busy, idle time.Duration, want ...processors) {
			t.Helper()
			mu.Lock()
			now.Requests, now.Writes, now.Entries = now.Requests+writes, now.Writes+writes, now.Entries+entries
			now.used, now.idle = now.used+busy, now.idle+idle
			mu.Unlock()
			time.Sleep(paceEvery)
			synctest.Wait()
			if !slices.Equal(used, want) {
				t.Errorf("after %v: %v, want %v", now, used, want)
			}
		}
		const little, much = 40 * time.Millisecond, 160 * time.Millisecond
		interval(400, 400, little, much)
		interval(400, 400, little, much)
		interval(0, 0, little, much)
		interval(400, 400, little, much)
		interval(400, 400, little, much)
		interval(400, 400, little, much, one)
		interval(400, 400, little, much, one)
		interval(400, 100, little, much, one, all)
		interval(400, 400, little, much, one, all)
		interval(400, 400, little, much, one, all)
		interval(400, 400, little, much, one, all, one)
		interval(400, 100, little, little, one, all, one, all)
		interval(400, 100, little, little, one, all, one, all, kept)
		interval(400, 100, little, little, one, all, one, all, kept)
		interval(400, 400, little, little, one, all, one, all, kept)
		interval(400, 400, little, little, one, all, one, all, kept)
		interval(400, 400, little, little, one, all, one, all, kept, one)
		stop()
		if !slices.Equal(used, []processors{one, all, one, all, kept, one, all}) {
			t.Errorf("in the end %v", used)
		}
	})
}

// later returns the sample after some time in which the server did the given work.
func (l look) later(after time.Duration, done server.Load, used, idle time.Duration) look {
	done.Requests, done.Entries, done.Writes = done.Requests+l.Requests, done.Entries+l.Entries, done.Writes+l.Writes
	return look{at: l.at.Add(after), used: l.used + used, idle: l.idle + idle, ok: true, Load: done}
}

func TestCrowded(t *testing.T) {
	t.Parallel()
	before := look{at: time.Now(), used: time.Minute, idle: time.Hour, ok: true, Load: server.Load{Requests: 1000, Entries: 500, Writes: 900}}
	const second = time.Second
	writers := server.Load{Requests: 3000, Entries: 300, Writes: 9000}
	for name, c := range map[string]struct {
		then       server.Load
		used, idle time.Duration // per second
		want       bool          // the result on all processors
		stays      bool          // the result on one processor
	}{
		"three servers and their clients": {writers, second / 3, second / 2, true, true},
		"nobody else":                     {writers, second / 3, 5 * second / 3, false, false},
		"half of somebody else":           {writers, second / 2, 9 * second / 10, false, true},
		"busy itself":                     {writers, 9 * second / 10, second / 10, false, false},
		"a little busy":                   {writers, 7 * second / 10, second / 10, false, true},
		"few entries":                     {server.Load{Requests: 30, Entries: 30, Writes: 90}, second / 3, second / 2, false, false},
		"reads":                           {server.Load{Requests: 30000, Entries: 300, Writes: 9000}, second / 3, second / 2, false, false},
		"a snapshot":                      {server.Load{Requests: 3000, Entries: 300, Writes: 9000, Snapshot: true}, second / 3, second / 2, false, false},
	} {
		then := before.later(second, c.then, c.used, c.idle)
		if got := crowded(before, then, false); got != c.want {
			t.Errorf("%s: %v on all", name, got)
		}
		if got := crowded(before, then, true); got != c.stays {
			t.Errorf("%s: %v on one", name, got)
		}
		if then.ok = false; crowded(before, then, true) {
			t.Errorf("%s: although nothing is known", name)
		}
	}
}

// TestWaiting covers a standalone server whose clients write and wait.
func TestWaiting(t *testing.T) {
	t.Parallel()
	before := look{at: time.Now(), used: time.Minute, idle: time.Hour, ok: true, Load: server.Load{Requests: 1000, Entries: 500, Writes: 900, Alone: true}}
	const second = time.Second
	many := server.Load{Requests: 80000, Entries: 2500, Writes: 80000}
	locks := server.Load{Requests: 6300, Entries: 2200, Writes: 2500}
	for name, c := range map[string]struct {
		then       server.Load
		used, idle time.Duration // per second
		want       bool          // the result on all processors
		stays      bool          // the result on one processor
	}{
		"64 writers":             {many, 8 * second / 10, 55 * second / 100, true, true},
		"one lock for all":       {locks, 7 * second / 10, 8 * second / 10, true, true},
		"locks of their own":     {server.Load{Requests: 27000, Entries: 4500, Writes: 18000}, 7 * second / 10, 8 * second / 10, true, true},
		"clients elsewhere":      {many, 8 * second / 10, 12 * second / 10, false, false},
		"somebody else has left": {many, 7 * second / 10, 125 * second / 100, false, true},
		"busy":                   {many, 12 * second / 10, second / 10, false, false},
		"nearly busy":            {many, 92 * second / 100, second / 10, true, false},
		"a slow disk":            {server.Load{Requests: 6000, Entries: 200, Writes: 6000}, second / 10, second, false, false},
		"reads":                  {server.Load{Requests: 250000, Entries: 2500, Writes: 80000}, 8 * second / 10, second / 2, false, false},
		"beside a snapshot":      {server.Load{Requests: 80000, Entries: 2500, Writes: 80000, Snapshot: true}, 8 * second / 10, second / 2, true, true},
	} {
		then := before.later(second, c.then, c.used, c.idle)
		then.Alone = true
		if got := waiting(before, then, false); got != c.want {
			t.Errorf("%s: %v on all", name, got)
		}
		if got := waiting(before, then, true); got != c.stays {
			t.Errorf("%s: %v on one", name, got)
		}
		if then.ok = false; waiting(before, then, true) {
			t.Errorf("%s: although nothing is known", name)
		}
		if then.ok, then.Alone = true, false; waiting(before, then, true) {
			t.Errorf("%s: although there are others to be told", name)
		}
	}
}

func TestWhileWritten(t *testing.T) {
	t.Parallel()
	var before look
	multis := look{Load: server.Load{Requests: 90000, Entries: 1000, Writes: 90000}, used: 90000 * (longCommand + time.Microsecond)}
	few := look{Load: server.Load{Requests: 9000, Entries: 5000, Writes: 9000}, used: 9000 * 5 * longCommand}
	for returning, want := range map[bool]processors{false: kept, true: one} {
		multis.Returning, few.Returning = returning, returning
		if got := whileWritten(before, few); got != want {
			t.Errorf("few writers, who return is %v: %d, want %d", returning, got, want)
		}
		if got := whileWritten(before, multis); got != all {
			t.Errorf("multis of clients, who return is %v: %d", returning, got)
		}
	}
}

// TestFitToThoseWhoWait checks that the decision for a standalone server follows the
// behaviour of its waiting clients.
func TestFitToThoseWhoWait(t *testing.T) {
	t.Parallel()
	var now look
	var got []processors
	f := fitter{use: func(p processors) { got = append(got, p) }, seen: []look{now}}
	for _, l := range []server.Load{
		{Requests: 2400, Entries: 480, Writes: 2400},                  // 8 writers at random times
		{Requests: 8000, Entries: 250, Writes: 8000, Returning: true}, // 64 writers that wait
		{Requests: 9000, Entries: 450, Writes: 1800},                  // many more reads
		{Requests: 2700, Entries: 450, Writes: 1800, Returning: true}, // locks of their own
	} {
		for range 2 * fitIntervals {
			now = now.later(paceEvery, l, 70*time.Millisecond, 90*time.Millisecond)
			now.Alone = true
			f.fit(now)
		}
		got = append(got, f.now)
	}
	modes := slices.Compact(slices.Clone(got))
	for _, p := range []processors{kept, one, all, one} {
		i := slices.Index(modes, p)
		if i < 0 {
			t.Fatalf("%v, and nowhere %v in its turn", got, p)
		}
		modes = modes[i:]
	}
}

// TestLooks checks that the processor times aren't read while there are few writes.
func TestLooks(t *testing.T) {
	t.Parallel()
	var l server.Load
	asked := time.Duration(0)
	see := looks(func() server.Load { return l }, func() (used, idle time.Duration, ok bool) {
		asked++
		return asked, 2 * asked, true
	})
	for i, entries := range []int64{0, loneWrites - 1, loneWrites, 0, 10 * loneWrites} {
		l.Entries += entries
		got := see()
		if want := entries >= loneWrites; got.ok != want || want && (got.used != asked || got.idle != 2*asked) || got.Entries != l.Entries {
			t.Errorf("%d: with %d entries more %+v", i, entries, got)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times, want 2", asked)
	}
}

// Not parallel, because it changes the whole process.
func TestSetProcessors(t *testing.T) {
	t.Setenv("GOMAXPROCS", "as it is")
	before := runtime.GOMAXPROCS(0)
	gathers := false
	use := setProcessors(func(on bool) { gathers = on })
	for _, p := range []processors{one, kept} {
		use(p)
		if !gathers {
			t.Errorf("mode %d does not gather", p)
		}
		if got := runtime.GOMAXPROCS(0); got != 1 {
			t.Errorf("one processor is %d", got)
		}
	}
	use(all)
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("%d processors, and %d before", got, before)
	}
	if gathers {
		t.Error("gathers with all of them")
	}
}
