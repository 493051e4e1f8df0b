package server

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// eagerly checks a write against this server's own copy before the write goes to the
// ensemble (enableEagerACLCheck): a client without permission then costs the ensemble
// nothing. The log decides about paths that are missing here and requests that don't
// decode. It also decides about a write queued after others of its session, because
// these may permit it.
func (c *conn) eagerly(op proto.Op, body []byte) proto.Code {
	if c.waiting.Load() != 0 {
		return proto.Ok
	}
	path, perm, acl, sets := eagerCheck(op, body)
	if perm == 0 || proto.ValidatePath(path) != nil {
		return proto.Ok
	}
	policy := c.s.cfg.policy()
	if sets {
		if _, code := tree.NormalizeACL(acl, c.identities(), policy); code == proto.ErrInvalidACL {
			return code
		}
	}
	if policy&tree.SkipACL != 0 {
		return proto.Ok
	}
	if op != proto.OpSetData && op != proto.OpSetACL {
		path = proto.Parent(path)
	}
	t := c.s.tree
	t.RLock()
	defer t.RUnlock()
	if n := t.Get(path); n != nil && !n.Allows(perm, c.identities()) {
		return proto.ErrNoAuth
	}
	return proto.Ok
}

// eagerCheck returns what a write requires; perm is 0 if the write isn't checked. sets
// reports whether the write brings an ACL.
func eagerCheck(op proto.Op, body []byte) (path string, perm proto.Perms, acl []proto.ACL, sets bool) {
	r := proto.AliasReader(body)
	switch op {
	case proto.OpCreate, proto.OpCreate2:
		var q proto.CreateRequest
		q.Decode(&r)
		return q.Path, proto.PermCreate, q.ACL, true
	case proto.OpDelete:
		var q proto.DeleteRequest
		q.Decode(&r)
		return q.Path, proto.PermDelete, nil, false
	case proto.OpSetData:
		var q proto.SetDataRequest
		q.Decode(&r)
		return q.Path, proto.PermWrite, nil, false
	case proto.OpSetACL:
		var q proto.SetACLRequest
		q.Decode(&r)
		return q.Path, proto.PermAdmin, q.ACL, true
	}
	return "", 0, nil, false
}
