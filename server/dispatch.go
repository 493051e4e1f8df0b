package server

import (
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
	reads  *tally // where reads are counted; nil: nowhere

	// Set by prepare. Without it the reply does the same, holding the tree's lock.
	census     *tree.Census
	ephemerals *tree.EphemeralList

	// Set by answer.
	hangUp bool  // the connection closes after this reply
	zxid   int64 // the zxid in the reply
}

// answer appends the reply to q, and before it the events that must precede it. The
// tree is locked, for reading or writing.
func (s *Server) answer(q *request, out []byte) []byte {
	if q.op == proto.OpSetWatches || q.op == proto.OpSetWatches2 {
		return s.answerSetWatches(q, out)
	}
	out, mark := proto.BeginFrame(out)
	h := proto.ReplyHeader{Xid: q.xid, Zxid: s.tree.LastZxid(), Err: q.refuse}
	out = h.Append(out)
	head := len(out)
	if h.Err == proto.Ok {
		h.Err, out = s.body(q, out)
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

// body appends the body of the reply to q.
func (s *Server) body(q *request, out []byte) (proto.Code, []byte) {
	switch q.op {
	case proto.OpPing:
		return proto.Ok, out
	case proto.OpGetData:
		return s.getData(q, out)
	case proto.OpExists:
		return s.exists(q, out)
	case proto.OpGetChildren, proto.OpGetChildren2:
		return s.getChildren(q, out)
	case proto.OpGetACL:
		return s.getACL(q, out)
	case proto.OpGetEphemerals:
		return s.getEphemerals(q, out)
	case proto.OpGetAllChildrenNumber:
		return s.getAllChildrenNumber(q, out)
	case proto.OpMultiRead:
		return s.multiRead(q, out)
	case proto.OpAddWatch:
		return s.addWatch(q, out)
	case proto.OpCheckWatches:
		return s.checkWatches(q), out
	case proto.OpRemoveWatches:
		return s.removeWatches(q), out
	case proto.OpWhoAmI:
		return proto.Ok, whoAmI(q, out)
	case proto.OpCloseSession:
		// The session is local to this server; other sessions' requests are proposed.
		q.hangUp = true
		return proto.Ok, out
	}
	return proto.ErrUnimplemented, out
}
