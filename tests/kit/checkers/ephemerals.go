package checkers

import (
	"cmp"
	"math"
	"slices"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// ephemerals checks that an ephemeral znode exists exactly as long as its session. All
// evidence that a session was alive at some zxid (replies on its connections, its znodes)
// must come before all evidence that it had ended: a closeSession, a server's statement,
// the absence of a znode that no client has deleted.
func ephemerals(x *index, _ *Options, r *Result) {
	bounds := x.bounds()
	later := x.laterTransactions()
	for _, l := range x.sessions() {
		if l.id != 0 {
			bounds.at(l.id).connections(l, later)
		}
	}
	n := 0
	for _, name := range x.names {
		p := x.paths[name]
		for i, in := range p.lives {
			if in.owner != 0 {
				n++
				owned(p, i, bounds)
			}
		}
	}
	for _, s := range x.h.States {
		bounds.state(s)
	}
	x.owners(r)
	ended := 0
	for _, l := range x.sessions() {
		b := bounds.at(l.id)
		if b.ended < math.MaxInt64 {
			ended++
		}
		if b.alive >= b.ended {
			r.violation(x, []record{b.aliveRec, b.endedRec}, "session %#x is alive at zxid %#x, and has ended by zxid %#x", l.id, b.alive, b.ended)
		}
	}
	r.count(n, "ephemeral znodes")
	r.count(ended, "ended sessions")
}

// owners checks that a znode has an owner if and only if it was created as an
// ephemeral znode.
func (x *index) owners(r *Result) {
	for _, w := range x.writes {
		if w.kind != proto.OpCreate2 || !w.done() || w.stat == nil {
			continue
		}
		owner := int64(0)
		if w.mode.Ephemeral() {
			owner = w.op.Session
		}
		if w.stat.Owner != owner {
			r.violation(x, []record{w.op}, "%s: created with mode %d by session %#x, and its owner is %#x", w.path, w.mode, w.op.Session, w.stat.Owner)
		}
	}
}

// bound limits the zxid at which a session ended.
type bound struct {
	born               int64 // the lowest zxid at which it is known to be alive; 0: none
	alive, ended       int64 // zxids of states: alive in the first, not in the second
	aliveRec, endedRec record
}

// bounds has a bound for each session.
type bounds map[int64]*bound

func (x *index) bounds() bounds { return make(bounds) }

func (b bounds) at(id int64) *bound {
	if b[id] == nil {
		b[id] = &bound{ended: math.MaxInt64}
	}
	return b[id]
}

func (b *bound) lives(zxid int64, rec record) {
	if b.born == 0 || zxid < b.born {
		b.born = zxid
	}
	if zxid > b.alive {
		b.alive, b.aliveRec = zxid, rec
	}
}

func (b *bound) ends(zxid int64, rec record) {
	if zxid < b.ended {
		b.ended, b.endedRec = zxid, rec
	}
}

// connections uses the replies of the session's own client.
func (b *bound) connections(l *life, later func(history.Time) *history.Op) {
	for _, c := range l.conns {
		for _, f := range c.frames {
			o := f.op
			switch {
			case o == nil || o.Zxid <= 0:
			case o.Code == proto.ErrSessionExpired:
				b.told(o.Return, o, later)
			case o.Op == proto.OpCloseSession && o.Code == proto.Ok:
				b.ends(o.Zxid, o)
			default:
				b.lives(o.Zxid, o)
			}
		}
	}
	for _, s := range l.changes {
		if s.Change == history.Expired {
			b.told(s.At, s, later)
		}
	}
}

// told records that a server reported the session as ended: it had ended before
// any request that was sent after that.
func (b *bound) told(at history.Time, rec record, later func(history.Time) *history.Op) {
	if o := later(at); o != nil {
		b.ends(o.Zxid, rec)
	}
}

// laterTransactions returns a function that finds, among the writes and the reads
// after a sync that were sent after a given time, the one with the lowest zxid.
func (x *index) laterTransactions() func(history.Time) *history.Op {
	var list []*history.Op
	for _, c := range x.conns {
		for i, o := range c.ops {
			synced := i > 0 && c.ops[i-1].Op == proto.OpSync && c.ops[i-1].Call == o.Call
			if o.Answered() && o.Zxid > 0 && (isWrite(o) || o.Op == proto.OpSync || synced) {
				list = append(list, o)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *history.Op) int { return cmp.Compare(a.Call, b.Call) })
	lowest := slices.Clone(list)
	for i := len(lowest) - 2; i >= 0; i-- {
		if lowest[i+1].Zxid < lowest[i].Zxid {
			lowest[i] = lowest[i+1]
		}
	}
	return func(t history.Time) *history.Op {
		i, _ := slices.BinarySearchFunc(list, t+1, func(o *history.Op, t history.Time) int { return cmp.Compare(o.Call, t) })
		if i == len(list) {
			return nil
		}
		return lowest[i]
	}
}

// owned uses the evidence that one ephemeral znode gives about its session.
func owned(p *path, i int, all bounds) {
	in := p.lives[i]
	b := all.at(in.owner)
	b.lives(in.czxid, in.rec)
	b.lives(in.last, in.rec)
	gone, rec := int64(math.MaxInt64), record(nil)
	if i+1 < len(p.lives) {
		gone, rec = p.lives[i+1].czxid, p.lives[i+1].rec
	}
	if a := p.absentIn(in.last, gone); a != nil {
		gone, rec = a.zxid, a.rec
	}
	if rec == nil {
		return
	}
	if p.openDeletes() > 0 || p.deletedIn(in.last, gone) {
		return
	}
	b.ends(gone, rec)
}

// state uses a server's session table.
func (b bounds) state(s *history.State) {
	if s.Live == nil {
		return
	}
	live := make(map[int64]bool)
	for _, id := range s.Live {
		live[id] = true
		b.at(id).lives(s.Zxid, s)
	}
	for id, one := range b {
		if !live[id] && one.born > 0 && one.born <= s.Zxid {
			one.ends(s.Zxid, s)
		}
	}
}
