package transport

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// contacts records, per peer, the start (not the answer) of the newest AppendEntries
// that the peer answered with success in the leader's term. A quorum of such times
// proves that this server was the leader at the oldest of these times. The time of
// the answer proves nothing, because the answer may have been in a buffer while the
// process was stopped.
//
// A start has a time and a number. We need the numbers to order two starts even if two
// readings of the clock are equal.
type contacts struct {
	self raft.ServerID
	last atomic.Uint64 // last number assigned

	mu      sync.Mutex
	term    uint64
	starts  map[raft.ServerID]contact
	waiting chan struct{} // closed at the next contact; nil when no goroutine waits
}

// contact is the start of an AppendEntries.
type contact struct {
	at     time.Time
	number uint64
}

// begin returns the contact that starts now.
func (c *contacts) begin() contact { return contact{time.Now(), c.last.Add(1)} }

func (c *contacts) record(term uint64, id raft.ServerID, start contact) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if term < c.term {
		return
	}
	if term > c.term || c.starts == nil {
		c.term, c.starts = term, make(map[raft.ServerID]contact)
	}
	if start.number > c.starts[id].number {
		c.starts[id] = start
		if c.waiting != nil {
			close(c.waiting)
			c.waiting = nil
		}
	}
}

// Changed returns a channel that is closed at the next contact with a peer.
func (c *contacts) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = make(chan struct{})
	}
	return c.waiting
}

// Contact returns the start of the newest AppendEntries that a peer answered with success
// in this term, or zero if there is none.
func (c *contacts) Contact(term uint64, id raft.ServerID) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.term != term {
		return time.Time{}
	}
	return c.starts[id].at
}

// Confirmed returns the newest time at which a quorum of the voters of conf is known to
// have accepted this server as the leader of term. This server counts as contacted now.
// It returns zero if there was no such time.
func (c *contacts) Confirmed(term uint64, conf raft.Configuration, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	var times []time.Time
	for _, s := range conf.Servers {
		switch {
		case s.Suffrage != raft.Voter:
		case s.ID == c.self:
			times = append(times, now)
		case c.term == term:
			times = append(times, c.starts[s.ID].at)
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

// Mark returns the current position in the order of contacts.
func (c *contacts) Mark() uint64 { return c.last.Load() }

// Heard reports whether a peer has answered this server, as the leader of term, with
// success in a contact that started after mark.
func (c *contacts) Heard(term uint64, id raft.ServerID, mark uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.term == term && c.starts[id].number > mark
}

// ConfirmedSince reports whether a quorum of the voters of conf is known to have accepted
// this server as the leader of term in contacts that started after mark.
func (c *contacts) ConfirmedSince(term uint64, conf raft.Configuration, mark uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	voters, yes := 0, 0
	for _, s := range conf.Servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if s.ID == c.self || c.term == term && c.starts[s.ID].number > mark {
			yes++
		}
	}
	return yes > voters/2
}
