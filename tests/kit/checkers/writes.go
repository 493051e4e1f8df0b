package checkers

import (
	"math"
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// write is one write of a request: the request itself, or a part of a multi.
type write struct {
	op      *history.Op
	kind    proto.Op // create2 for all creates, setData or delete
	path    string   // changed path; for a sequential create without a reply the prefix
	seq     bool     // a sequential create without a reply: path is a prefix
	value   string
	mode    proto.CreateMode
	version int32 // expected
	stat    *history.Stat
	code    proto.Code
	// zxid is the transaction's; 0 if it is not known whether there was one.
	zxid int64
}

// done reports whether the write is known to have been executed.
func (w *write) done() bool { return w.zxid != 0 }

// open reports whether the outcome of the write is unknown.
func (w *write) open() bool { return w.zxid == 0 && !w.op.Answered() }

// order returns the zxid, or the highest value if none is known.
func (w *write) order() int64 {
	if !w.done() {
		return math.MaxInt64
	}
	return w.zxid
}

// takeWrites extracts all writes from the requests.
func (x *index) takeWrites() {
	for _, o := range x.h.Ops {
		switch o.Op {
		case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpSetData, proto.OpDelete:
			x.takeWrite(o, &history.Part{Op: o.Op, Path: o.Path, Value: o.Value, Version: o.Version, Mode: o.Mode, Code: o.Code, Created: o.Created, Stat: o.Stat})
		case proto.OpMulti:
			for i := range o.Parts {
				if o.Parts[i].Op != proto.OpCheck {
					x.takeWrite(o, &o.Parts[i])
				}
			}
		case proto.OpCloseSession:
		default:
			continue
		}
		if o.Answered() && o.Zxid > 0 {
			x.ops[o.Zxid] = o
		}
	}
}

func (x *index) takeWrite(o *history.Op, p *history.Part) {
	w := &write{op: o, kind: p.Op, path: p.Path, value: p.Value, mode: p.Mode, version: p.Version, stat: p.Stat, code: p.Code}
	if p.Op == proto.OpCreate || p.Op == proto.OpCreateContainer {
		w.kind = proto.OpCreate2
	}
	if w.kind == proto.OpCreate2 && p.Created != "" {
		w.path = p.Created
	} else {
		w.seq = w.kind == proto.OpCreate2 && w.mode.Sequential()
	}
	x.writes = append(x.writes, w)
	x.byOp[o] = append(x.byOp[o], w)
	if w.value != "" {
		x.values[w.value] = w
	}
	if o.Done() {
		x.know(w, o.Zxid)
	}
}

// know records that w was executed as a transaction.
func (x *index) know(w *write, zxid int64) {
	w.zxid = zxid
	x.byZxid[zxid] = append(x.byZxid[zxid], w)
}

// seen infers the outcome of a request without a reply from a value at a path with an mzxid. A
// multi is executed as a whole.
func (x *index) seen(path, value string, mzxid int64) {
	w := x.values[value]
	if w == nil || !w.open() || !(w.path == path || w.seq && strings.HasPrefix(path, w.path)) {
		return
	}
	for _, other := range x.byOp[w.op] {
		if other.open() {
			if other.seq {
				other.path, other.seq = path, false
			}
			x.know(other, mzxid)
		}
	}
}
