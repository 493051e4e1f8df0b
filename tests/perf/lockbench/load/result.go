package load

import (
	"slices"
	"time"
)

// Result is the result of one run. Times are in microseconds.
type Result struct {
	Acquisitions int
	Seconds      float64
	// HandOffs counts the acquisitions of a shared lock after another client had it.
	HandOffs int
	// HandOff50 and HandOff99 are percentiles of the time from a call of Release, while
	// another client waits for the shared lock, to the return of the next Acquire: how long
	// the lock is idle although a client wants it.
	HandOff50, HandOff99 float64
	// Wait50, Wait99 and WaitMax are durations of Acquire.
	Wait50, Wait99, WaitMax float64
	// Overlaps counts acquisitions that returned before the previous holder had called
	// Release: it should be 0.
	Overlaps int
	// Packets is the number of packets that the server received and sent per release, if
	// the program counted them.
	Packets float64
}

// Judge evaluates the holdings between from and until. It sorts line.
func Judge(line []Holding, shape string, from, until time.Time) Result {
	slices.SortFunc(line, func(a, b Holding) int { return a.Held.Compare(b.Held) })
	r := Result{Seconds: until.Sub(from).Seconds()}
	var handOffs, waits []float64
	for i, h := range line {
		if h.Held.Before(from) || h.Held.After(until) {
			continue
		}
		r.Acquisitions++
		waits = append(waits, micros(h.Held.Sub(h.Asked)))
		if shape == Own || i == 0 {
			continue
		}
		before := line[i-1]
		if before.Released.After(h.Held) {
			r.Overlaps++
		}
		if before.Client != h.Client {
			r.HandOffs++
		}
		if wanted(line[i:], before.Released) {
			handOffs = append(handOffs, micros(h.Held.Sub(before.Released)))
		}
	}
	r.HandOff50, r.HandOff99 = quantile(handOffs, 50), quantile(handOffs, 99)
	r.Wait50, r.Wait99, r.WaitMax = quantile(waits, 50), quantile(waits, 99), quantile(waits, 100)
	return r
}

// wanted reports whether a client waited for the lock at a time. Such a client acquired
// the lock later, but asked for it before.
func wanted(later []Holding, at time.Time) bool {
	return slices.ContainsFunc(later, func(h Holding) bool { return !h.Asked.After(at) })
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// quantile returns the value that percent of the samples are below, or 0 without samples.
func quantile(samples []float64, percent int) float64 {
	if len(samples) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(samples))
	return s[min(len(s)*percent/100, len(s)-1)]
}
