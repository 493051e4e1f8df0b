package tree

import "github.com/zkgo/zkgo/proto"

// exec executes a transaction, or one operation of a multi, on a tree.
type exec struct {
	*Tree
	tx *Txn
}

// Apply validates and executes one write. It sets the newest zxid even if it
// refuses the request. op is create, create2, createContainer, createTTL,
// delete, setData, setACL, multi, closeSession (req nil) or OpDeleteContainer
// (req a *Reap); any other op fails with Unimplemented. A request of the wrong
// type, or with a null on which ZooKeeper's server fails, gets MarshallingError.
//
// The tree copies the data that it keeps, so the request may alias a log entry. The
// result is valid until the next Apply, Advance or SetConfig.
func (t *Tree) Apply(tx *Txn, op proto.Op, req proto.Record) *Result {
	r := &t.result
	r.reset(op)
	x := exec{t, tx}
	switch req := req.(type) {
	case *proto.MultiRequest:
		r.Code = proto.ErrUnimplemented
		if op == proto.OpMulti {
			r.Code = x.multi(req, r)
		}
	default:
		r.Code = x.apply(op, req, r)
	}
	if r.Code != proto.Ok {
		r.Events = r.Events[:0]
	}
	t.zxid = tx.Zxid
	return r
}

// apply executes one operation that is not a multi. It either succeeds or
// changes nothing.
func (t *exec) apply(op proto.Op, req proto.Record, r *Result) proto.Code {
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		c, ok := creationOf(op, req)
		if !ok {
			return proto.ErrMarshalling
		}
		return t.create(&c, r)
	case proto.OpDelete:
		if req, ok := req.(*proto.DeleteRequest); ok {
			return t.delete(req)
		}
	case proto.OpSetData:
		if req, ok := req.(*proto.SetDataRequest); ok {
			return t.setData(req, r)
		}
	case proto.OpSetACL:
		if req, ok := req.(*proto.SetACLRequest); ok {
			return t.setACL(req, r)
		}
	case proto.OpDeleteContainer:
		if req, ok := req.(*Reap); ok {
			return t.reap(req)
		}
	case proto.OpCloseSession:
		t.closeSession()
		return proto.Ok
	case proto.OpMulti:
	default:
		return proto.ErrUnimplemented
	}
	return proto.ErrMarshalling
}

// fire records an event about n.
func (t *exec) fire(typ proto.EventType, n *node) {
	list := n.State().ACL
	t.result.Events = append(t.result.Events, Event{Type: typ, Path: n.Path(), Zxid: t.tx.Zxid, ACL: list.List(), access: list})
}
