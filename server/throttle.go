package server

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// ConnThrottle limits how fast sessions are begun, so that a crowd of clients
// that comes back at once does not keep the server from those it has. It is a
// bucket of tokens and, beside it, BLUE: while the bucket stays empty a growing
// part of the clients is turned away at random, so that those let in are not
// always the same. Who is turned away finds his connection closed.
type ConnThrottle struct {
	Tokens    int           // what the bucket holds
	FillTime  time.Duration // how often FillCount tokens come in; at least 1 ms
	FillCount int
	// FreezeTime is how long the probability stays as it is; negative: no BLUE.
	FreezeTime                 time.Duration
	DropIncrease, DropDecrease float64 // what it changes by
	DecreaseRatio              float64 // it goes down while at most this part of the bucket is out
	New, Renewed               int     // tokens for a new session, and for one that comes back
}

// connThrottle is a ConnThrottle at work.
type connThrottle struct {
	ConnThrottle
	random func() float64

	mu         sync.Mutex
	tokens     int
	filled     int64 // clock
	frozen     int64
	dropChance float64
}

func newConnThrottle(c *ConnThrottle, now int64) *connThrottle {
	if c == nil || c.Tokens == 0 {
		return nil
	}
	return &connThrottle{ConnThrottle: *c, random: rand.Float64, tokens: c.Tokens, filled: now, frozen: now}
}

// take reports whether a client may have its session, and takes the tokens. now
// is the clock.
func (t *connThrottle) take(now int64, renewed bool) bool {
	need := t.New
	if renewed {
		need = t.Renewed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fill(now)
	if t.FreezeTime >= 0 && t.unlucky(now) || t.tokens < need {
		return false
	}
	t.tokens -= need
	return true
}

// fill puts in what has come since the last time. What has come in a part of
// FillTime is lost with it, as in ZooKeeper, once there was a whole one.
func (t *connThrottle) fill(now int64) {
	passed := time.Duration(now - t.filled)
	if passed <= t.FillTime {
		return
	}
	t.filled = now
	more := float64(passed) / float64(t.FillTime) * float64(t.FillCount)
	t.tokens = int(math.Min(float64(t.tokens)+math.Floor(more), float64(t.Tokens)))
}

// unlucky draws a lot.
func (t *connThrottle) unlucky(now int64) bool {
	out := t.Tokens - t.tokens
	if time.Duration(now-t.frozen) > t.FreezeTime {
		switch {
		case out == t.Tokens:
			t.dropChance = math.Min(t.dropChance+t.DropIncrease, 1)
		case out <= int(math.Round(float64(t.Tokens)*t.DecreaseRatio)):
			t.dropChance = math.Max(t.dropChance-t.DropDecrease, 0)
		}
		t.frozen = now
	}
	return t.random() < t.dropChance
}

// state is the probability to be turned away, and how many tokens are out. A nil
// throttle has none of either.
func (t *connThrottle) state() (chance float64, deficit int) {
	if t == nil {
		return 0, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dropChance, t.Tokens - t.tokens
}
