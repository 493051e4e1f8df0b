package server

import (
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
)

const ms = int64(time.Millisecond)

func TestTokens(t *testing.T) {
	t.Parallel()
	b := newConnThrottle(&ConnThrottle{Tokens: 3, FillTime: 10 * time.Millisecond, FillCount: 2, FreezeTime: -1, New: 1, Renewed: 2}, 0)
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
		if got := b.take(step.at, step.renewed); got != step.want {
			t.Errorf("step %d: taken %v", i, got)
		}
		if _, deficit := b.state(); deficit != step.deficit {
			t.Errorf("step %d: %d tokens are out, want %d", i, deficit, step.deficit)
		}
	}
	if newConnThrottle(&ConnThrottle{}, 0) != nil || newConnThrottle(nil, 0) != nil {
		t.Error("a bucket of no size is no limit")
	}
}

// While the bucket is empty, the server rejects more and more clients at random, and
// fewer and fewer once it is full again.
func TestBlue(t *testing.T) {
	t.Parallel()
	b := newConnThrottle(&ConnThrottle{Tokens: 1, FillTime: time.Second, FillCount: 1, FreezeTime: 10 * time.Millisecond,
		DropIncrease: 0.4, DropDecrease: 0.3, New: 1, Renewed: 1}, 0)
	lot := 0.0
	b.random = func() float64 { return lot }
	lot = 0.9
	if !b.take(0, false) {
		t.Fatal("the first is turned away")
	}
	for i, want := range []float64{0.4, 0.8, 1, 1} {
		b.take(int64(i+1)*11*ms, false)
		if got, _ := b.state(); got != want {
			t.Errorf("after %d freeze times the chance is %v, want %v", i+1, got, want)
		}
	}
	if b.take(55*ms, false) {
		t.Error("let in although everybody is turned away")
	}
	if got := b.take(5000*ms, false); !got { // the bucket is full again
		t.Error("turned away with a lot of 0.9 when the chance is 0.7")
	}
	if got, _ := b.state(); got != 0.7 {
		t.Errorf("the chance is %v, want 0.7", got)
	}
}

func TestSessionsBegunTooFastAreTurnedAway(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) {
		c.Limits.ConnThrottle = &ConnThrottle{Tokens: 2, FillTime: 1000 * time.Hour, FillCount: 1, FreezeTime: -1, New: 1, Renewed: 1}
	})
	connect(t, s)
	w := connect(t, s)
	third := dial(t, s)
	third.write(proto.AppendFrame(nil, (&proto.ConnectRequest{TimeOut: 30000}).Append(nil)))
	third.wantClosed()
	w.create("/who-is-in-stays-in", nil, proto.ModePersistent)
	if n := s.stats.rejected.Load(); n != 1 {
		t.Errorf("%d were counted as rejected", n)
	}
	if n := s.stats.tokenDeficit.Picture(time.Now()); n.Count != 2 || n.Max != 2 {
		t.Errorf("deficit %+v", n)
	}
	s.tokens.mu.Lock()
	s.tokens.dropChance = 0.25
	s.tokens.mu.Unlock()
	if got := metric(s, "connection_drop_probability"); got != "0.25" {
		t.Errorf("zk_connection_drop_probability is %q", got)
	}
}
