package limits

import (
	"testing"
	"time"
)

const ms = int64(time.Millisecond)

func TestTokens(t *testing.T) {
	t.Parallel()
	b := NewSessionThrottle(&SessionRate{Tokens: 3, FillTime: 10 * time.Millisecond, FillCount: 2, FreezeTime: -1, New: 1, Renewed: 2}, 0)
	for i, step := range []struct {
		at      int64
		renewed bool
		want    bool
		deficit int
	}{
		{0, false, true, 1},
		{0, true, true, 3},
		{0, false, false, 3},
		{10 * ms, false, false, 3}, // nothing is added before a fill time has passed
		{15 * ms, true, true, 2},   // 3 tokens: one and a half times two
		{16 * ms, true, false, 2},
		{900 * ms, true, true, 2}, // never more than the capacity of the bucket
	} {
		if got := b.Take(step.at, step.renewed); got != step.want {
			t.Errorf("step %d: taken %v", i, got)
		}
		if _, deficit := b.State(); deficit != step.deficit {
			t.Errorf("step %d: %d tokens in use, want %d", i, deficit, step.deficit)
		}
	}
	if NewSessionThrottle(&SessionRate{}, 0) != nil || NewSessionThrottle(nil, 0) != nil {
		t.Error("a bucket of no size is no limit")
	}
}

// While the bucket is empty, we should reject more and more clients at random, and fewer
// and fewer once it is full again.
func TestBlue(t *testing.T) {
	t.Parallel()
	b := NewSessionThrottle(&SessionRate{Tokens: 1, FillTime: time.Second, FillCount: 1, FreezeTime: 10 * time.Millisecond,
		DropIncrease: 0.4, DropDecrease: 0.3, New: 1, Renewed: 1}, 0)
	lot := 0.0
	b.random = func() float64 { return lot }
	lot = 0.9
	if !b.Take(0, false) {
		t.Fatal("the first client is rejected")
	}
	for i, want := range []float64{0.4, 0.8, 1, 1} {
		b.Take(int64(i+1)*11*ms, false)
		if got, _ := b.State(); got != want {
			t.Errorf("after %d freeze times the probability is %v, want %v", i+1, got, want)
		}
	}
	if b.Take(55*ms, false) {
		t.Error("a session was accepted although the throttle drops all")
	}
	if got := b.Take(5000*ms, false); !got { // the bucket is full again
		t.Error("rejected at 0.9 with a probability of 0.7")
	}
	if got, _ := b.State(); got != 0.7 {
		t.Errorf("the probability is %v, want 0.7", got)
	}
}
