package limits

import (
	"math"
	"sync/atomic"
)

// Large bounds the bytes of all large requests together.
type Large struct {
	Above int // the length above which a request is large
	Most  int64
	held  atomic.Int64
}

// NewLarge returns a Large. If above is 0, no request is large.
func NewLarge(above int, most int64) *Large {
	if above <= 0 {
		above = math.MaxInt
	}
	return &Large{Above: above, Most: most}
}

// Bounds reports whether any request can be large.
func (l *Large) Bounds() bool { return l.Above != math.MaxInt }

// Fits reports whether a request of n bytes fits now, in addition to the others.
func (l *Large) Fits(n int) bool { return l.held.Load()+int64(n) <= l.Most }

// Take counts a request of n bytes, if it fits.
func (l *Large) Take(n int) bool {
	if l.held.Add(int64(n)) > l.Most {
		l.Return(n)
		return false
	}
	return true
}

// Return undoes Take.
func (l *Large) Return(n int) { l.held.Add(-int64(n)) }

// Held returns the bytes that count now.
func (l *Large) Held() int64 { return l.held.Load() }
