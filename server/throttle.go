package server

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// ConnThrottle limits how fast sessions begin, so that a crowd of reconnecting clients
// doesn't keep the server from those it has. It is a token bucket with BLUE: while the
// bucket stays empty, the server rejects a growing part of the clients at random, so
// that it doesn't always admit the same ones. The server closes the connection of a
// rejected client.
type ConnThrottle struct {
	Tokens    int           // capacity of the bucket
	FillTime  time.Duration // how often FillCount tokens are added; at least 1 ms
	FillCount int
	// FreezeTime is how long the probability stays constant; negative: no BLUE.
	FreezeTime                 time.Duration
	DropIncrease, DropDecrease float64 // changes of the probability
	DecreaseRatio              float64 // the probability decreases while at most this part of the bucket is in use
	New, Renewed               int     // tokens for a new session, and for a renewed one
}

// connThrottle is an active ConnThrottle.
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

// take reports whether a client may have its session, and if so takes the tokens. now
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

// fill adds the tokens due since the last fill. After a whole FillTime has passed, a
// fraction that gives no whole token is lost, as in ZooKeeper.
func (t *connThrottle) fill(now int64) {
	passed := time.Duration(now - t.filled)
	if passed <= t.FillTime {
		return
	}
	t.filled = now
	more := float64(passed) / float64(t.FillTime) * float64(t.FillCount)
	t.tokens = int(math.Min(float64(t.tokens)+math.Floor(more), float64(t.Tokens)))
}

// unlucky decides at random whether to reject a client, after updating the probability.
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

// state returns the probability of a rejection, and how many tokens are in use. Both
// are 0 for a nil throttle.
func (t *connThrottle) state() (chance float64, deficit int) {
	if t == nil {
		return 0, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dropChance, t.Tokens - t.tokens
}
