package transport

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// recheck is the pause between the two polls that must agree.
	recheck = 20 * time.Millisecond
	// patience limits the wait for missing answers and for other servers that are equally
	// good candidates.
	patience = 250 * time.Millisecond
	// standingPause limits the duration of an election before the next poll.
	standingPause = 300 * time.Millisecond
	// again and seldom are the pauses between polls, initially and after a while: an
	// answer that is missing by then won't come soon.
	again  = 10 * time.Millisecond
	seldom = 500 * time.Millisecond
	// yielding is the time that a server waits for an equal with a higher id to start the
	// election first. That server waits as long for the answer of a silent leader. If
	// both became candidates at the same time, they would split the votes.
	yielding = 1200 * time.Millisecond
	// stuck is the time without a leader after which a server starts an election although
	// other servers have longer logs, provided that the rest are a majority. Something
	// keeps the others from starting one, e.g. a disk that hangs.
	stuck = 3 * time.Second
)

// leaderWatch replaces a lost leader without waiting for Raft's timers. A leader is lost
// when its process is gone or no longer leads: its connections to us end, and its port
// refuses new ones or the server reports that itself. Slowness is never evidence; the
// heartbeat timeout covers it.
//
// Invariants:
//   - One search runs at a time, because two would split the votes.
//   - This server starts an election only after two polls in a row agree, and only if
//     nothing has changed since the second one. Otherwise it could depose a leader that
//     has just been elected.
type leaderWatch struct {
	*instance
	poll       *poll
	relay      *relay
	abstention *abstention
	busy       atomic.Bool // a search is in progress
}

// Suspect reports that a connection to a server ended. If that server leads this one and
// turns out to be gone, this server starts the search for another leader.
func (w *leaderWatch) Suspect(id raft.ServerID) {
	if w.cfg.View != nil && w.cfg.View().Leader == id {
		w.lookForLeader()
	}
}

// Leaderless reports that this server knows no leader.
func (w *leaderWatch) Leaderless() {
	if w.cfg.View != nil && w.cfg.View().Leader == "" {
		w.lookForLeader()
	}
}

// lookForLeader starts a search unless one is in progress.
func (w *leaderWatch) lookForLeader() {
	if w.closed() || !votes(w.cfg.View(), w.cfg.ID) || !w.busy.CompareAndSwap(false, true) {
		return
	}
	if !w.spawn(func() {
		defer w.busy.Store(false)
		w.untilLed(w.cfg.View().Leader)
	}) {
		w.busy.Store(false)
	}
}

// untilLed polls the other voters repeatedly, and starts an election when this server
// should, until there is a new leader.
func (w *leaderWatch) untilLed(lost raft.ServerID) {
	began, wait, agreed, limit := time.Now(), again, false, askLimit
	for !w.closed() {
		v := w.cfg.View()
		if v.Leader != "" && v.Leader != lost || !votes(v, w.cfg.ID) {
			return
		}
		replies := w.poll.askAll(w.ctx, v, limit)
		if heard(replies) <= (len(replies)+1)/2 {
			limit = min(limit*3/2, maxAsk) // they may be far away
		}
		patient := time.Since(began) < patience
		// A dying process closes its connections before its port refuses new ones, so
		// silence counts only if it lasts.
		if v.Leader != "" && (leads(v.Leader, replies) || !patient && alive(v.Leader, replies)) {
			return
		}
		late := time.Since(began) > stuck
		if late {
			replies = withoutBetter(replies, v.standing())
		}
		pauseFor := wait
		yields := time.Since(began) < yielding && outranked(w.cfg.ID, v.standing(), replies)
		switch may := !w.abstention.holds(time.Now()) && !yields && mayStand(w.cfg.ID, v.standing(), replies, patient); {
		case may && !agreed:
			agreed, pauseFor = true, recheck
		case may && w.relay.stand(v):
			agreed, pauseFor = false, standingPause
			if late {
				pauseFor += rand.N(2 * candidacyTime)
			}
		default:
			agreed = false
			wait = min(wait*3/2, seldom)
		}
		w.pause(pauseFor)
	}
}

// votes reports whether a server has a vote and isn't the only voter.
func votes(v View, id raft.ServerID) bool {
	self, others := false, false
	for _, s := range v.Config.Servers {
		if s.Suffrage == raft.Voter {
			self = self || s.ID == id
			others = others || s.ID != id
		}
	}
	return self && others
}

// CompareIDs orders ServerIDs by the numbers they consist of: "9" before "10", "3" before
// "3.1".
func CompareIDs(a, b raft.ServerID) int {
	an, ak, _ := strings.Cut(string(a), ".")
	bn, bk, _ := strings.Cut(string(b), ".")
	if c := compareDigits(an, bn); c != 0 {
		return c
	}
	return compareDigits(ak, bk)
}

func compareDigits(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
