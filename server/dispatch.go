package server

import (
	"github.com/zkgo/zkgo/internal/ops/stats"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// request is a request that is being answered from the tree.
type request struct {
	c      *conn
	op     proto.Op
	xid    int32
	refuse proto.Code
	body   []byte
	ids    []proto.ID
	reads  *stats.Tally // where reads are counted; nil: nowhere

	// Set by prepare. Without it the reply does the same, holding the tree's lock.
	census     *tree.Census
	ephemerals *tree.EphemeralList

	// Set by answer.
	hangUp bool  // the connection closes after this reply
	zxid   int64 // the zxid in the reply
}

// answer appends the reply to q, and before it the events that must precede it. The
// tree is locked, for reading or writing.
func (q *request) answer(out []byte) []byte {
	if q.op == proto.OpSetWatches || q.op == proto.OpSetWatches2 {
		return q.answerSetWatches(out)
	}
	out, mark := proto.BeginFrame(out)
	h := proto.ReplyHeader{Xid: q.xid, Zxid: q.c.s.tree.LastZxid(), Err: q.refuse}
	out = h.Append(out)
	head := len(out)
	if h.Err == proto.Ok {
		h.Err, out = q.appendBody(out)
	}
	if h.Err != proto.Ok {
		out = out[:head]
	}
	if q.op == proto.OpPing {
		h.Xid = proto.XidPing
	}
	if h.Err == proto.ErrUnimplemented && q.refuse == proto.Ok {
		h.Zxid = -1
		q.hangUp = true
	}
	q.zxid = h.Zxid
	h.Append(out[:mark+proto.LengthSize])
	return proto.EndFrame(out, mark)
}

// appendBody appends the body of the reply to q.
func (q *request) appendBody(out []byte) (proto.Code, []byte) {
	switch q.op {
	case proto.OpPing:
		return proto.Ok, out
	case proto.OpGetData:
		return q.getData(out)
	case proto.OpExists:
		return q.exists(out)
	case proto.OpGetChildren, proto.OpGetChildren2:
		return q.getChildren(out)
	case proto.OpGetACL:
		return q.getACL(out)
	case proto.OpGetEphemerals:
		return q.getEphemerals(out)
	case proto.OpGetAllChildrenNumber:
		return q.getAllChildrenNumber(out)
	case proto.OpMultiRead:
		return q.multiRead(out)
	case proto.OpAddWatch:
		return q.addWatch(out)
	case proto.OpCheckWatches:
		return q.checkWatches(), out
	case proto.OpRemoveWatches:
		return q.removeWatches(), out
	case proto.OpWhoAmI:
		return proto.Ok, whoAmI(q, out)
	case proto.OpCloseSession:
		// The session is local to this server; other sessions' requests are proposed.
		q.hangUp = true
		return proto.Ok, out
	}
	return proto.ErrUnimplemented, out
}
