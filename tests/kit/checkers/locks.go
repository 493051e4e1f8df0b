package checkers

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// locks checks that no two clients believe that they hold the same lock; that no reply shows a
// client that its session and so its lock is alive, if the client sent the request after another
// client had been given the lock; and that each queue is served in order.
func locks(x *index, o *Options, r *Result) {
	byLock := make(map[string][]*history.Hold)
	for _, h := range x.h.Holds {
		byLock[h.Lock] = append(byLock[h.Lock], h)
	}
	clients := 0
	for _, lock := range slices.Sorted(maps.Keys(byLock)) {
		holds := byLock[lock]
		slices.SortStableFunc(holds, func(a, b *history.Hold) int { return cmp.Compare(a.From, b.From) })
		var longest *history.Hold // of the earlier holds, the one that lasts longest
		var newest *history.Hold  // of the earlier holds, the one with the latest znode
		holders := make(map[int]bool)
		for _, h := range holds {
			holders[h.Client] = true
			if longest != nil && longest.To > h.From && longest.Node != h.Node && !o.OnlyTold {
				r.violation(x, []record{longest, h}, "%s: client %d believes to hold it from %s, and client %d does until %s",
					lock, h.Client, history.Clock(h.From), longest.Client, history.Clock(longest.To))
			}
			if newest != nil && newest.Czxid > h.Czxid {
				r.violation(x, []record{newest, h}, "%s: the znode of client %d is after that of client %d, which holds the lock later", lock, newest.Client, h.Client)
			}
			if longest == nil || h.To > longest.To {
				longest = h
			}
			if newest == nil || h.Czxid > newest.Czxid {
				newest = h
			}
		}
		x.told(lock, holds, r)
		clients += len(holders)
	}
	r.count(len(x.h.Holds), "holds")
	r.count(len(byLock), "locks")
	r.count(clients, "holders")
}

// told looks, for every holder, for a reply to a request that the holder sent
// after the next client had been given the lock and before the holder gave it
// back.
func (x *index) told(lock string, holds []*history.Hold, r *Result) {
	first := make(map[string]*history.Hold) // the first hold of each znode
	var turns []*history.Hold
	for _, h := range holds {
		if first[h.Node] == nil {
			first[h.Node] = h
			turns = append(turns, h)
		}
	}
	for i, h := range turns {
		if i+1 == len(turns) {
			break
		}
		next := turns[i+1]
		if o := x.life(h.Session).answeredIn(next.From, x.givesBack(h)); o != nil {
			r.violation(x, []record{h, next, o}, "%s: client %d has it from %s, and client %d is told later that his session lives, with his znode in the queue",
				lock, next.Client, history.Clock(next.From), h.Client)
		}
	}
}

// answer is a request. Its reply shows that the session is alive.
type answer struct {
	call history.Time
	rec  record
}

// index computes the times that we compare with the holds of a life.
func (l *life) index() {
	if l.deletes != nil {
		return
	}
	l.deletes = make(map[string]history.Time)
	for _, c := range l.conns {
		if a := c.attach; a != nil && a.Change == history.Attached {
			l.answers = append(l.answers, answer{a.Call, a})
		}
		for _, o := range c.ops {
			if o.Answered() && o.Code != proto.ErrSessionExpired {
				l.answers = append(l.answers, answer{o.Call, o})
			}
			if at, known := l.deletes[o.Path]; o.Op == proto.OpDelete && (!known || o.Call < at) {
				l.deletes[o.Path] = o.Call
			}
		}
	}
	slices.SortStableFunc(l.answers, func(a, b answer) int { return cmp.Compare(a.call, b.call) })
}

// givesBack returns when the holder began to give the lock back.
func (x *index) givesBack(h *history.Hold) history.Time {
	l := x.life(h.Session)
	l.index()
	at := history.Time(math.MaxInt64)
	if l.closed != nil {
		at = l.closed.Call
	}
	if deleted, ok := l.deletes[h.Node]; ok {
		at = min(at, deleted)
	}
	return at
}

// answeredIn returns the first request sent in [from, before) with a reply that shows that the
// session is alive.
func (l *life) answeredIn(from, before history.Time) record {
	l.index()
	i, _ := slices.BinarySearchFunc(l.answers, from, func(a answer, t history.Time) int { return cmp.Compare(a.call, t) })
	if i == len(l.answers) || l.answers[i].call >= before {
		return nil
	}
	return l.answers[i].rec
}
