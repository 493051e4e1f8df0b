package server

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// eagerly checks a write against this server's own copy before the write goes to the
// ensemble (enableEagerACLCheck): a client without permission then costs the ensemble
// nothing. The log decides about paths that are missing here and requests that don't
// decode. It also decides about a write queued after others of its session, because
// these may permit it. ZooKeeper leaves createContainer and createTTL to the log too.
func (cs *clientSession) eagerly(op proto.Op, req proto.Record) proto.Code {
	c := cs.c
	path, ok := proto.PathOf(req)
	if !ok || op.Perms() == 0 || op == proto.OpCreateContainer || op == proto.OpCreateTTL || c.replies.waiting.Load() != 0 || proto.ValidatePath(path) != nil {
		return proto.Ok
	}
	policy := c.s.cfg.policy()
	if acl, sets := aclOf(req); sets {
		if _, code := tree.NormalizeACL(acl, cs.ids.All(), policy); code == proto.ErrInvalidACL {
			return code
		}
	}
	if policy&tree.SkipACL != 0 {
		return proto.Ok
	}
	t := c.s.tree
	t.RLock()
	defer t.RUnlock()
	if n := t.Get(op.Guard(path)); n != nil && !n.Allows(op.Perms(), cs.ids.All()) {
		return proto.ErrNoAuth
	}
	return proto.Ok
}
