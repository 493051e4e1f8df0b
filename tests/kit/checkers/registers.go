package checkers

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// register is the state of one znode in the search.
type register struct {
	exists  bool
	version int32
	value   string
}

// access is one use of a register: a write, or a read that is linearizable, e.g.
// because a sync precedes it.
type access struct {
	kind    proto.Op // create2, setData, delete, getData
	value   string   // to write
	expect  int32
	code    proto.Code // of the reply
	version int32      // in the reply
	read    string
	unknown bool // there was no reply
	// executed is set for an access without a reply if a client has seen its
	// value.
	executed bool
	// zxid is the state that the reply shows, or in which a client has seen the
	// written value; 0 if unknown. It is only a hint for the search.
	zxid int64
	op   *history.Op
}

// registers searches, for every path that was written with setData, an order of all its
// writes and linearizable reads that agrees with real time and with every reply. We try the
// order of the zxids first, but trust neither zxids nor versions: if that order fails, we
// accept any other order.
func registers(x *index, o *Options, r *Result) {
	byPath := x.accesses()
	end := time.Now().Add(o.Search)
	n := 0
	var names, hard []string
	for _, name := range x.names {
		if len(byPath[name]) > 0 {
			names = append(names, name)
			n += len(byPath[name])
		}
	}
	search := func(name string, limit time.Duration) porcupine.CheckResult {
		ops := byPath[name]
		result := porcupine.CheckOperationsTimeout(model(), fewer(ops), max(limit, time.Millisecond))
		if result == porcupine.Illegal {
			r.violation(x, x.smallest(ops), "%s: no order of its %d writes and linearizable reads explains all answers", name, len(ops))
		}
		return result
	}
	// The search may never end for a register with many requests without a reply, so we do the
	// others first.
	for _, name := range names {
		if witness(byPath[name]) {
			continue
		}
		if search(name, min(o.Search/20, time.Until(end))) == porcupine.Unknown {
			hard = append(hard, name)
		}
	}
	undecided := 0
	for i, name := range hard {
		if search(name, time.Until(end)/time.Duration(len(hard)-i)) != porcupine.Unknown {
			continue
		}
		if undecided++; undecided <= o.Most {
			r.Undecided = append(r.Undecided, fmt.Sprintf("%s: %d accesses, not within %v for all registers", name, len(byPath[name]), o.Search))
		}
	}
	if more := undecided - o.Most; more > 0 {
		r.Undecided = append(r.Undecided, fmt.Sprintf("and %d more", more))
	}
	r.count(len(names)-undecided, "registers")
	r.count(n, "accesses")
}

// model is a register for porcupine.
func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return register{} },
		Step: func(state, input, _ any) (bool, any) {
			s, ok := input.(*access).step(state.(register))
			return ok, s
		},
	}
}

// step reports whether an access can have received its reply in a state, and returns the next
// state.
func (a *access) step(s register) (register, bool) {
	code, next := a.outcome(s)
	if a.unknown {
		return next, true
	}
	if code != a.code {
		return s, false
	}
	if code != proto.Ok || a.kind == proto.OpDelete {
		return next, true
	}
	if a.kind == proto.OpGetData {
		return s, s.version == a.version && s.value == a.read
	}
	return next, next.version == a.version
}

// outcome is the specification of a register.
func (a *access) outcome(s register) (proto.Code, register) {
	switch {
	case a.kind == proto.OpCreate2 && s.exists:
		return proto.ErrNodeExists, s
	case a.kind == proto.OpCreate2:
		return proto.Ok, register{exists: true, value: a.value}
	case !s.exists:
		return proto.ErrNoNode, s
	case a.kind == proto.OpGetData:
		return proto.Ok, s
	case a.expect != -1 && a.expect != s.version:
		return proto.ErrBadVersion, s
	case a.kind == proto.OpDelete:
		return proto.Ok, register{}
	}
	return proto.Ok, register{exists: true, version: s.version + 1, value: a.value}
}

// accesses collects the accesses for the search, by path.
func (x *index) accesses() map[string][]porcupine.Operation {
	written := make(map[string]bool)
	others := make(map[string]bool) // disappear by themselves, or get generated names
	for _, w := range x.writes {
		switch {
		case w.kind == proto.OpSetData:
			written[w.path] = true
		case w.mode != proto.ModePersistent:
			others[w.path] = true
		}
	}
	byPath := make(map[string][]porcupine.Operation)
	add := func(path string, a *access, call, ret history.Time) {
		if !written[path] || others[path] {
			return
		}
		if a.unknown {
			ret = x.latest(a)
		}
		byPath[path] = append(byPath[path], porcupine.Operation{ClientId: a.op.Client, Input: a, Call: call, Return: ret})
	}
	for _, w := range x.writes {
		if a := accessOf(w); a != nil {
			add(w.path, a, w.op.Call, w.op.Return)
		}
	}
	for _, c := range x.conns {
		for i, o := range c.ops {
			if o.Op != proto.OpGetData || !o.Answered() {
				continue
			}
			call := o.Call
			if !o.Linear {
				if i == 0 {
					continue
				}
				sync := c.ops[i-1]
				if sync.Op != proto.OpSync || !sync.Answered() || sync.Code != proto.Ok {
					continue
				}
				call = sync.Call
			}
			a := &access{kind: proto.OpGetData, code: o.Code, read: o.Data, zxid: o.Zxid, op: o}
			if o.Stat != nil {
				a.version = o.Stat.Version
			}
			add(o.Path, a, call, o.Return)
		}
	}
	return byPath
}

// accessOf returns a write as an access; nil if it proves nothing, e.g. the parts
// of a multi that failed because of another part.
func accessOf(w *write) *access {
	a := &access{kind: w.kind, value: w.value, expect: w.version, code: w.code, unknown: !w.op.Answered(), executed: w.done(), zxid: w.zxid, op: w.op}
	if w.op.Answered() {
		a.zxid = w.op.Zxid
	}
	failed := w.op.Answered() && !w.op.Done()
	if w.op.Op == proto.OpMulti && failed {
		first := slices.IndexFunc(w.op.Parts, func(p history.Part) bool { return p.Code != proto.Ok })
		if first < 0 || w.op.Parts[first].Path != w.path || w.op.Parts[first].Value != w.value || first > 0 && w.op.Parts[0].Path == w.path {
			return nil
		}
	}
	switch {
	case a.unknown:
	case w.stat != nil:
		a.version = w.stat.Version
	case !failed && w.kind == proto.OpSetData:
		return nil
	}
	return a
}

// latest returns the last moment at which a request without a reply can have been
// executed. If a client has seen its value, that is when its session was next
// attached, or was known to be over: from then on the requests left on an
// abandoned connection are refused. Otherwise it may be executed after everything
// else, which is as good as never.
func (x *index) latest(a *access) history.Time {
	if a.executed {
		for _, s := range x.life(a.op.Session).changes {
			if s.Call > a.op.Call && s.Conn != a.op.Conn && (s.Change == history.Attached || s.Change == history.Expired) {
				return s.At
			}
		}
	}
	return math.MaxInt64
}

// smallest shortens a history that has no linearization: it returns the last
// accesses of the shortest prefix that has none.
func (x *index) smallest(ops []porcupine.Operation) []record {
	ops = slices.Clone(ops)
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int {
		return int(max(-1, min(1, a.Return-b.Return)))
	})
	illegal := func(n int) bool {
		begin := slices.Clone(ops[:n])
		for _, later := range ops[n:] { // they may have been executed already
			if n > 0 && later.Call < ops[n-1].Return && later.Input.(*access).kind != proto.OpGetData {
				a := *later.Input.(*access)
				a.unknown = true
				later.Input, later.Return = &a, math.MaxInt64
				begin = append(begin, later)
			}
		}
		return porcupine.CheckOperationsTimeout(model(), begin, time.Second) == porcupine.Illegal
	}
	low, high := 0, len(ops)
	for high-low > 1 {
		if mid := (low + high) / 2; illegal(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	var records []record
	for _, op := range ops[max(0, high-12):high] {
		records = append(records, op.Input.(*access).op)
	}
	return records
}
