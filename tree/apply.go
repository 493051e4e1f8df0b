package tree

import "github.com/zkgo/zkgo/proto"

// Apply validates and executes one write. We advance the newest zxid even if we refuse the
// request. op is create, create2, createContainer, createTTL, delete, setData, setACL,
// multi, closeSession (req nil) or OpDeleteContainer (req a *Reap); any other op fails with
// Unimplemented. A request of the wrong type, or with a null on which ZooKeeper's server
// fails, gets MarshallingError.
//
// We copy what the tree keeps of the request, so the request may alias a log entry. The
// result is valid until the next Apply, Advance or SetConfig.
func (t *Tree) Apply(tx *Txn, op proto.Op, req proto.Record) *Result {
	r := &t.result
	r.reset(op)
	switch req := req.(type) {
	case *proto.MultiRequest:
		r.Code = proto.ErrUnimplemented
		if op == proto.OpMulti {
			r.Code = t.multi(tx, req, r)
		}
	default:
		r.Code = t.apply(tx, op, req, r, &r.Events)
	}
	if r.Code != proto.Ok {
		r.Events = r.Events[:0]
	}
	t.zxid = tx.Zxid
	return r
}

// apply executes one operation that is not a multi. It either succeeds or
// changes nothing.
func (t *Tree) apply(tx *Txn, op proto.Op, req proto.Record, r *Result, events *[]Event) proto.Code {
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		c, ok := creationOf(op, req)
		if !ok {
			return proto.ErrMarshalling
		}
		return t.create(tx, &c, r, events)
	case proto.OpDelete:
		if req, ok := req.(*proto.DeleteRequest); ok {
			return t.delete(tx, req, events)
		}
	case proto.OpSetData:
		if req, ok := req.(*proto.SetDataRequest); ok {
			return t.setData(tx, req, r, events)
		}
	case proto.OpSetACL:
		if req, ok := req.(*proto.SetACLRequest); ok {
			return t.setACL(tx, req, r)
		}
	case proto.OpDeleteContainer:
		if req, ok := req.(*Reap); ok {
			return t.reap(tx, req, events)
		}
	case proto.OpCloseSession:
		t.closeSession(tx, events)
		return proto.Ok
	case proto.OpMulti:
	default:
		return proto.ErrUnimplemented
	}
	return proto.ErrMarshalling
}

// edit must be called before a node in the tree is changed. It saves the node's
// old state for snapshots and for a running multi, and subtracts the node from
// the totals.
func (t *Tree) edit(n *Node) {
	t.preserve(n)
	t.quotaChanges(n.path())
	t.undo.changed(n)
	t.uncount(n)
}

// commit adds a changed node to the totals again.
func (t *Tree) commit(n *Node) { t.count(n) }

// fire appends an event about n.
func fire(events *[]Event, typ proto.EventType, n *Node, zxid int64) {
	*events = append(*events, Event{Type: typ, Path: n.path(), Zxid: zxid, ACL: n.acl.list, access: n.acl})
}
