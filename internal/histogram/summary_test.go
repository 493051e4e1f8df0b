package histogram

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestBuckets(t *testing.T) {
	t.Parallel()
	values := []int64{0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 1000, 1 << 40, math.MaxInt64}
	for range 10000 {
		values = append(values, rand.Int64()>>rand.IntN(63))
	}
	for _, v := range values {
		b := bucketOf(v)
		if b < 0 || b >= buckets || upper(b) < v || b > 0 && upper(b-1) >= v {
			t.Fatalf("%d falls into bucket %d, up to %d", v, b, upper(b))
		}
		if got := float64(upper(b)) - float64(v); got > float64(v)/perPower {
			t.Fatalf("%d is reported as %d", v, upper(b))
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	var s Summary
	now := time.Unix(0, 0)
	if p := s.Snapshot(now); p.Count != 0 || p.Min != 0 || p.Max != 0 || p.Quantile(0.5) != 0 || p.Mean() != 0 {
		t.Errorf("empty: %+v", p)
	}
	var all []int64
	for range 20000 {
		v := rand.Int64N(1 << (1 + rand.IntN(40)))
		all = append(all, v)
		s.Observe(1, v)
	}
	slices.Sort(all)
	p := s.Snapshot(now)
	if p.Count != 20000 || p.Min != all[0] || p.Max != all[len(all)-1] {
		t.Errorf("count %d, min %d, max %d", p.Count, p.Min, p.Max)
	}
	for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.999, 1} {
		want := all[max(int(math.Ceil(q*float64(len(all))))-1, 0)]
		if got := p.Quantile(q); got < want || float64(got) > float64(want)*(1+1.0/perPower) {
			t.Errorf("quantile %v: %d, want %d", q, got, want)
		}
	}
}

func TestSummaryOfMany(t *testing.T) {
	t.Parallel()
	var s Summary
	s.Observe(99, 3)
	s.Observe(1, -5)
	if p := s.Snapshot(time.Now()); p.Count != 100 || p.Sum != 297 || p.Min != 0 || p.Max != 3 || p.Quantile(0.5) != 3 || p.Mean() != 2.97 {
		t.Errorf("%d %d %d %d %d", p.Count, p.Sum, p.Min, p.Max, p.Quantile(0.5))
	}
	s.Reset()
	if p := s.Snapshot(time.Now()); p.Count != 0 || p.Sum != 0 || p.Max != 0 || p.Quantile(1) != 0 {
		t.Errorf("after Reset: %d %d", p.Count, p.Sum)
	}
}

func TestObserveMany(t *testing.T) {
	t.Parallel()
	var s Summary
	s.ObserveMany(3, 10, 1, 7)
	s.ObserveMany(0, 0, 0, 0)
	if p := s.Snapshot(time.Now()); p.Count != 3 || p.Sum != 10 || p.Min != 1 || p.Max != 7 || p.Quantile(0.5) != 3 {
		t.Errorf("%d %d %d %d %d", p.Count, p.Sum, p.Min, p.Max, p.Quantile(0.5))
	}
}

// TestQuantilesForget tests that quantiles cover only the last one to two windows.
func TestQuantilesForget(t *testing.T) {
	t.Parallel()
	var s Summary
	at := time.Unix(1000, 0)
	s.Snapshot(at)
	s.Observe(10, 1000)
	for i, want := range []int64{1000, 1000, 1000, 0} {
		p := s.Snapshot(at)
		if got := p.Quantile(0.5); got != want || p.Count != 10 {
			t.Errorf("window %d: %d of %d, want %d", i, got, p.Count, want)
		}
		at = at.Add(windowLength)
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	var s Summary
	if n := testing.AllocsPerRun(100, func() { s.Observe(1, 12345) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	var s Summary
	var v int64
	for b.Loop() {
		v += 977
		s.Observe(1, v&0xfffff)
	}
}

func BenchmarkObserveConcurrently(b *testing.B) {
	var s Summary
	b.RunParallel(func(pb *testing.PB) {
		var v int64
		for pb.Next() {
			v += 977
			s.Observe(1, v&0xfffff)
		}
	})
}

func TestObserveConcurrently(t *testing.T) {
	t.Parallel()
	var s Summary
	var wg sync.WaitGroup
	for g := range int64(4) {
		wg.Go(func() {
			for i := range int64(1000) {
				s.Observe(1, i*(g+1))
			}
		})
	}
	s.Snapshot(time.Now())
	wg.Wait()
	if p := s.Snapshot(time.Now()); p.Count != 4000 || p.Max != 3996 || p.Min != 0 || p.total != 4000 {
		t.Errorf("%d observations, max %d", p.Count, p.Max)
	}
}
