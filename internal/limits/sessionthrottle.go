package limits

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// SessionRate limits how fast sessions may begin. See server.ConnThrottle, which has the
// same fields, for their meaning.
type SessionRate struct {
	Tokens                     int
	FillTime                   time.Duration
	FillCount                  int
	FreezeTime                 time.Duration
	DropIncrease, DropDecrease float64
	DecreaseRatio              float64
	New, Renewed               int
}

// SessionThrottle is the token bucket of a SessionRate.
type SessionThrottle struct {
	SessionRate
	random func() float64

	mu         sync.Mutex
	tokens     int
	filled     int64 // clock
	frozen     int64
	dropChance float64
}

// NewSessionThrottle returns a full bucket. If its capacity would be 0, it returns nil, i.e. no
// limit. now is the clock.
func NewSessionThrottle(c *SessionRate, now int64) *SessionThrottle {
	if c == nil || c.Tokens == 0 {
		return nil
	}
	return &SessionThrottle{SessionRate: *c, random: rand.Float64, tokens: c.Tokens, filled: now, frozen: now}
}

// Take reports whether a client may have its session, and if so removes the tokens. now is
// the clock.
func (t *SessionThrottle) Take(now int64, renewed bool) bool {
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

// fill adds the tokens due since the last fill. After a whole FillTime has passed, we drop a
// fraction of a token, like ZooKeeper.
func (t *SessionThrottle) fill(now int64) {
	passed := time.Duration(now - t.filled)
	if passed <= t.FillTime {
		return
	}
	t.filled = now
	more := float64(passed) / float64(t.FillTime) * float64(t.FillCount)
	t.tokens = int(math.Min(float64(t.tokens)+math.Floor(more), float64(t.Tokens)))
}

// unlucky decides at random whether to reject a client, after updating the probability.
func (t *SessionThrottle) unlucky(now int64) bool {
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

// State returns the probability of a rejection, and how many tokens are in use. Both
// are 0 for a nil throttle.
func (t *SessionThrottle) State() (chance float64, deficit int) {
	if t == nil {
		return 0, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dropChance, t.Tokens - t.tokens
}
