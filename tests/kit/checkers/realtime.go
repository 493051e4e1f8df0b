package checkers

import (
	"cmp"
	"slices"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// mark is a zxid that is known at a time.
type mark struct {
	at   history.Time
	zxid int64
	op   *history.Op
}

// realtime checks that a request that begins after another has ended is ordered
// after it. A write that was sent after any client received a reply with some zxid has a later
// zxid. A read after a sync shows at least every write that had been answered when the sync was
// sent; a linearizable read shows every write that had been answered when the read was sent.
func realtime(x *index, _ *Options, r *Result) {
	var known []mark // by the time at which it was known
	for _, o := range x.h.Ops {
		if o.Answered() && o.Zxid > 0 {
			known = append(known, mark{o.Return, o.Zxid, o})
		}
	}
	slices.SortStableFunc(known, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	for i := 1; i < len(known); i++ { // the highest so far
		if known[i].zxid < known[i-1].zxid {
			known[i].zxid, known[i].op = known[i-1].zxid, known[i-1].op
		}
	}
	before := func(t history.Time) *mark {
		i, _ := slices.BinarySearchFunc(known, t, func(m mark, t history.Time) int { return cmp.Compare(m.at, t) })
		if i == 0 {
			return nil
		}
		return &known[i-1]
	}
	x.orderOfWrites(r, before)
	x.orderOfSyncs(r)
	x.onceOnly(r)
}

// orderOfWrites checks every transaction against the zxids known when its request
// was sent.
func (x *index) orderOfWrites(r *Result, before func(history.Time) *mark) {
	n := 0
	check := func(o *history.Op, zxid int64) {
		n++
		if m := before(o.Call); m != nil && m.zxid >= zxid {
			r.violation(x, []record{m.op, o}, "a write became zxid %#x, though zxid %#x was known before it was sent", zxid, m.zxid)
		}
	}
	for zxid, o := range x.ops {
		check(o, zxid)
	}
	for _, w := range x.writes {
		if w.done() && !w.op.Answered() {
			check(w.op, w.zxid)
		}
	}
	r.count(n, "writes")
}

// orderOfSyncs checks every read after a sync, and every linearizable read,
// against the writes that had been answered when the sync, or the read, was sent.
func (x *index) orderOfSyncs(r *Result) {
	var written []mark
	for zxid, o := range x.ops {
		written = append(written, mark{o.Return, zxid, o})
	}
	slices.SortFunc(written, func(a, b mark) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.zxid, b.zxid)) })
	for i := 1; i < len(written); i++ {
		if written[i].zxid < written[i-1].zxid {
			written[i].zxid, written[i].op = written[i-1].zxid, written[i-1].op
		}
	}
	synced, linear := 0, 0
	newest := func(by history.Time) *mark {
		i, _ := slices.BinarySearchFunc(written, by, func(m mark, t history.Time) int { return cmp.Compare(m.at, t) })
		if i == 0 {
			return &mark{}
		}
		return &written[i-1]
	}
	for _, c := range x.conns {
		var sync *history.Op
		for _, o := range c.ops {
			if o.Op == proto.OpSync {
				sync = o
			}
			if !o.Answered() || o.Zxid <= 0 {
				continue
			}
			if o.Linear {
				linear++
				if m := newest(o.Call); m.zxid > o.Zxid {
					r.violation(x, []record{m.op, o}, "a linearizable read is of zxid %#x, though the write of zxid %#x had been answered before it was sent", o.Zxid, m.zxid)
				}
			}
			if sync == nil || !sync.Answered() || sync.Code != proto.Ok {
				continue
			}
			synced++
			if m := newest(sync.Call); m.zxid > o.Zxid {
				r.violation(x, []record{m.op, sync, o}, "a reply after a sync is of zxid %#x, though the write of zxid %#x had been answered before the sync was sent", o.Zxid, m.zxid)
			}
		}
	}
	r.count(synced, "replies after a sync")
	r.count(linear, "linearizable reads")
}

// onceOnly checks that a transaction belongs to only one request.
func (x *index) onceOnly(r *Result) {
	for _, o := range x.h.Ops {
		if first := x.ops[o.Zxid]; first != nil && first != o && isWrite(o) && o.Answered() && o.Zxid > 0 {
			r.violation(x, []record{first, o}, "two requests were answered with the zxid %#x of one transaction", o.Zxid)
		}
	}
}

// isWrite reports whether a request makes a transaction.
func isWrite(o *history.Op) bool {
	switch o.Op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpSetData, proto.OpDelete, proto.OpMulti, proto.OpCloseSession:
		return true
	}
	return false
}
