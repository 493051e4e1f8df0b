package histogram

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// Summary is the distribution of a quantity that is observed often: the count, the
// sum, the minimum and the maximum since the last Reset, and quantiles of the last
// minutes. The zero value is ready to use. A Summary must not be copied.
type Summary struct {
	count, sum atomic.Int64
	least      atomic.Int64 // the minimum plus one, so that 0 means none
	most       atomic.Int64

	// We allocate recent at the first observation: most of a server's summaries never get
	// one, and a test starts many servers.
	recent atomic.Pointer[windows]

	mu     sync.Mutex // serializes readers
	turned time.Time  // when current changed
}

// The bounds of the buckets grow by an eighth. A bucket is exact below 2*perPower,
// and within 1/8 above.
const (
	perPower = 8
	subBits  = 3
	buckets  = (64 - subBits) * perPower
)

type window [buckets]atomic.Uint32

// windows is a pair of windows. Observations go into the current one. The other one is the
// previous window, or empty.
type windows struct {
	of      [2]window
	current atomic.Uint32
}

// windowLength is how long observations go into one window. Quantiles cover one to
// two windows.
const windowLength = 5 * time.Minute

// Totals returns the number of values observed since the last Reset and their sum. It
// is for callers that read too often for a Snapshot.
func (s *Summary) Totals() (count, sum int64) { return s.count.Load(), s.sum.Load() }

// Observe records n observations of v. A negative v counts as 0.
func (s *Summary) Observe(n, v int64) {
	v = max(v, 0)
	s.count.Add(n)
	s.sum.Add(n * v)
	s.bound(v)
	r := s.recent.Load()
	if r == nil {
		r = s.makeRecent()
	}
	r.of[r.current.Load()&1][bucketOf(v)].Add(uint32(n))
}

// bound extends the minimum and the maximum to include v.
func (s *Summary) bound(v int64) {
	for m := s.least.Load(); m == 0 || v+1 < m; m = s.least.Load() {
		if s.least.CompareAndSwap(m, v+1) {
			break
		}
	}
	for m := s.most.Load(); v > m; m = s.most.Load() {
		if s.most.CompareAndSwap(m, v) {
			break
		}
	}
}

// ObserveMany records n values, none negative, that the caller has already combined into
// their sum, minimum and maximum. For the quantiles, we count each value as their mean.
func (s *Summary) ObserveMany(n, sum, least, most int64) {
	if n <= 0 {
		return
	}
	mean := sum / n
	s.Observe(n, mean)
	s.sum.Add(sum - n*mean)
	s.bound(least)
	s.bound(most)
}

// makeRecent allocates the windows unless another goroutine has just done so.
func (s *Summary) makeRecent() *windows {
	s.recent.CompareAndSwap(nil, new(windows))
	return s.recent.Load()
}

// bucketOf returns the bucket of a value that is not negative.
func bucketOf(v int64) int {
	if v < perPower {
		return int(v)
	}
	shift := bits.Len64(uint64(v)) - subBits - 1
	return shift*perPower + int(v>>shift)
}

// upper returns the largest value of a bucket.
func upper(bucket int) int64 {
	if bucket < 2*perPower {
		return int64(bucket)
	}
	shift := bucket/perPower - 1
	low := uint64(bucket%perPower+perPower) << shift
	return int64(low + 1<<shift - 1)
}

// Snapshot is the state of a Summary at one time.
type Snapshot struct {
	Count, Sum, Min, Max int64
	counts               [buckets]uint64
	total                uint64
}

// Snapshot returns the state of the observations until now.
func (s *Summary) Snapshot(now time.Time) *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &Snapshot{Count: s.count.Load(), Sum: s.sum.Load(), Min: max(s.least.Load()-1, 0), Max: s.most.Load()}
	r := s.recent.Load()
	if r == nil {
		s.turned = now
		return p
	}
	for i := range p.counts {
		p.counts[i] = uint64(r.of[0][i].Load()) + uint64(r.of[1][i].Load())
		p.total += p.counts[i]
	}
	if s.turned.IsZero() {
		s.turned = now
	} else if now.Sub(s.turned) >= windowLength {
		r.turn()
		s.turned = now
	}
	return p
}

// Values are the values of a Summary at one time: all observations since the last Reset,
// and the quantiles of the recent ones.
type Values struct {
	Count, Sum, Min, Max     int64
	Mean                     float64 // of all observations
	P50, P90, P95, P99, P999 int64
}

// Values returns the values until now.
func (s *Summary) Values(now time.Time) Values {
	p := s.Snapshot(now)
	return Values{
		Count: p.Count, Sum: p.Sum, Min: p.Min, Max: p.Max, Mean: p.Mean(),
		P50: p.Quantile(0.5), P90: p.Quantile(0.9), P95: p.Quantile(0.95), P99: p.Quantile(0.99), P999: p.Quantile(0.999),
	}
}

// turn clears the older window and makes it the current one.
func (r *windows) turn() {
	next := r.current.Load() ^ 1
	for i := range r.of[next] {
		r.of[next][i].Store(0)
	}
	r.current.Store(next)
}

// Reset clears the Summary. It may lose concurrent observations.
func (s *Summary) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range []*atomic.Int64{&s.count, &s.sum, &s.least, &s.most} {
		v.Store(0)
	}
	r := s.recent.Load()
	if r == nil {
		return
	}
	for w := range r.of {
		for i := range r.of[w] {
			r.of[w][i].Store(0)
		}
	}
}

// Since observes the time since start, in nanoseconds.
func (s *Summary) Since(start time.Time) { s.Observe(1, int64(time.Since(start))) }

// Quantile returns a value that a fraction q of the recent observations doesn't
// exceed, 0 without observations.
func (p *Snapshot) Quantile(q float64) int64 {
	if p.total == 0 {
		return 0
	}
	rank := uint64(math.Ceil(q * float64(p.total)))
	var sum uint64
	for i, n := range p.counts {
		if sum += n; n > 0 && sum >= rank {
			return min(upper(i), p.Max)
		}
	}
	return p.Max
}

// Mean returns the average of all observations.
func (p *Snapshot) Mean() float64 {
	if p.Count == 0 {
		return 0
	}
	return float64(p.Sum) / float64(p.Count)
}
