package quorum

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// recheck is the pause between two polls, which have to agree.
	recheck = 20 * time.Millisecond
	// patience is how long a server waits for missing answers and for other servers that
	// are equally good candidates.
	patience = 250 * time.Millisecond
	// standingPause is how long an election may take before the next poll.
	standingPause = 300 * time.Millisecond
	// again and seldom are the pauses between polls, initially and after a while: an
	// answer that is missing by then won't come soon.
	again  = 10 * time.Millisecond
	seldom = 500 * time.Millisecond
	// yielding is how long a server lets an equal with a higher id stand first. That server
	// waits as long for the answer of a silent leader. If both stood at the same time, they
	// would split the votes.
	yielding = 1200 * time.Millisecond
	// stuck is the time without a leader after which a server stands although other
	// servers have longer logs, if the rest are a majority: something keeps those servers
	// from standing, e.g. a disk that hangs.
	stuck = 3 * time.Second
)

// leaderWatch replaces a lost leader without waiting for Raft's timers. We consider a
// leader lost when its process is gone or has stopped leading: its connections to us end,
// and its port refuses new ones or the server confirms it. We never treat slowness as
// evidence; the heartbeat timeout covers it.
type leaderWatch struct {
	mu     sync.Mutex
	busy   bool
	ctx    context.Context
	cancel context.CancelFunc
	closed bool
	wg     sync.WaitGroup
}

// begin returns a context for a watch, or nil if one is already in progress.
func (w *leaderWatch) begin() context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.busy {
		return nil
	}
	if w.ctx == nil {
		w.ctx, w.cancel = context.WithCancel(context.Background())
	}
	w.busy = true
	w.wg.Add(1)
	return w.ctx
}

func (w *leaderWatch) end() {
	w.mu.Lock()
	w.busy = false
	w.mu.Unlock()
	w.wg.Done()
}

func (w *leaderWatch) stop() {
	w.mu.Lock()
	w.closed = true
	if w.cancel != nil {
		w.cancel()
	}
	w.mu.Unlock()
	w.wg.Wait()
}

// Suspect reports that a connection to a server ended. If that server leads this one and
// turns out to be gone, this server starts the search for another leader.
func (t *Transport) Suspect(id raft.ServerID) {
	if t.cfg.View != nil && t.cfg.View().Leader == id {
		t.lookForLeader()
	}
}

// Leaderless reports that this server knows no leader.
func (t *Transport) Leaderless() {
	if t.cfg.View != nil && t.cfg.View().Leader == "" {
		t.lookForLeader()
	}
}

// lookForLeader starts the watch unless one is in progress.
func (t *Transport) lookForLeader() {
	if t.closed() || !votes(t.cfg.View(), t.id) {
		return
	}
	ctx := t.watch.begin()
	if ctx == nil {
		return
	}
	go func() {
		defer t.watch.end()
		t.untilLed(ctx, t.cfg.View().Leader)
	}()
}

// untilLed polls the other voters repeatedly, and stands when this server should,
// until there is a leader other than the lost one.
func (t *Transport) untilLed(ctx context.Context, lost raft.ServerID) {
	began, wait, agreed, limit := time.Now(), again, false, askLimit
	for ctx.Err() == nil {
		v := t.cfg.View()
		if v.Leader != "" && v.Leader != lost || !votes(v, t.id) {
			return
		}
		answers := t.poll(ctx, v, limit)
		if heard(answers) <= (len(answers)+1)/2 {
			limit = min(limit*3/2, maxAsk) // they may be far away
		}
		patient := time.Since(began) < patience
		// A dying process closes its connections before its port refuses new ones, so we
		// count silence only if it lasts.
		if v.Leader != "" && (leads(v.Leader, answers) || !patient && alive(v.Leader, answers)) {
			return
		}
		late := time.Since(began) > stuck
		if late {
			answers = withoutBetter(answers, v.standing())
		}
		pauseFor := wait
		yields := time.Since(began) < yielding && outranked(t.id, v.standing(), answers)
		switch may := !t.abstains() && !yields && mayStand(t.id, v.standing(), answers, patient); {
		case may && !agreed:
			agreed, pauseFor = true, recheck
		case may && t.stand(v):
			agreed, pauseFor = false, standingPause
			if late {
				pauseFor += rand.N(2 * candidacy)
			}
		default:
			agreed = false
			wait = min(wait*3/2, seldom)
		}
		pause(ctx, pauseFor)
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

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
