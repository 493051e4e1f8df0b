package peer

import (
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// contacts remembers, per peer, when the newest AppendEntries that it answered
// with success in the leader's term was STARTED. A quorum of such times proves
// that this server was the leader at the oldest of them: the answer alone
// proves nothing about the time it arrives, as it may have lain in a buffer of
// a stopped process.
type contacts struct {
	mu      sync.Mutex
	term    uint64
	starts  map[raft.ServerID]time.Time
	waiting chan struct{} // closed at the next contact; nil when nobody waits
}

func (c *contacts) record(term uint64, id raft.ServerID, start time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if term < c.term {
		return
	}
	if term > c.term || c.starts == nil {
		c.term, c.starts = term, make(map[raft.ServerID]time.Time)
	}
	if start.After(c.starts[id]) {
		c.starts[id] = start
		if c.waiting != nil {
			close(c.waiting)
			c.waiting = nil
		}
	}
}

// Changed returns a channel that is closed at the next contact with a peer.
func (t *Transport) Changed() <-chan struct{} {
	c := &t.contacts
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = make(chan struct{})
	}
	return c.waiting
}

// Contact returns when the newest AppendEntries that a peer answered with
// success in this term was started; zero when there was none.
func (t *Transport) Contact(term uint64, id raft.ServerID) time.Time {
	c := &t.contacts
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.term != term {
		return time.Time{}
	}
	return c.starts[id]
}

// Confirmed returns the newest time at which a quorum of the voters of conf
// is known to have taken this server for the leader of term. This server
// counts as contacted now. It is zero when there was no such time.
func (t *Transport) Confirmed(term uint64, conf raft.Configuration, now time.Time) time.Time {
	c := &t.contacts
	c.mu.Lock()
	defer c.mu.Unlock()
	var times []time.Time
	for _, s := range conf.Servers {
		switch {
		case s.Suffrage != raft.Voter:
		case s.ID == t.id:
			times = append(times, now)
		case c.term == term:
			times = append(times, c.starts[s.ID])
		default:
			times = append(times, time.Time{})
		}
	}
	if len(times) == 0 {
		return time.Time{}
	}
	slices.SortFunc(times, func(a, b time.Time) int { return b.Compare(a) })
	return times[len(times)/2]
}
