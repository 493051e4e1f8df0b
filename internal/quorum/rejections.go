package quorum

import (
	"sync"
	"sync/atomic"
	"time"
)

// rejections counts the refused Raft messages.
type rejections struct {
	total atomic.Int64

	mu    sync.Mutex
	since map[string]int64     // refused since the last log line, by server and rule
	told  map[string]time.Time // time of the last log line
}

// Rejected returns the number of Raft messages that this server has refused since its
// start.
func (h *Hub) Rejected() int64 { return h.rejected.total.Load() }

// Reject counts a message of a server that breaks a rule, and logs it at most once per
// refusalPause.
func (h *Hub) Reject(from, rule string, err error) {
	r := &h.rejected
	r.total.Add(1)
	key := from + " " + rule
	now := time.Now()
	r.mu.Lock()
	if r.since == nil || len(r.since) > maxHandshakes {
		r.since, r.told = make(map[string]int64), make(map[string]time.Time)
	}
	r.since[key]++
	count, tell := r.since[key], now.Sub(r.told[key]) >= refusalPause
	if tell {
		r.since[key], r.told[key] = 0, now
	}
	r.mu.Unlock()
	if tell {
		h.log.Error("refused a Raft message that no correct server sends, and closed its stream", "from", from, "err", err.Error(), "count", count)
	}
}
