package zktxn

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// The owner that ZooKeeper stores for a container and for a TTL znode.
const (
	containerOwner = -1 << 63
	ttlOwner       = -1 << 56
)

// Owner returns the owner of a znode that a transaction of type op creates, as ZooKeeper
// stores it; 0 for an ephemeral one, which the transaction's session owns. It returns false for
// a TTL that is logged because of a bug: no version of ZooKeeper creates that znode.
func (c *CreateTxn) Owner(op proto.Op, p tree.Policy) (owner int64, creates bool) {
	switch {
	case op == proto.OpCreateContainer:
		return containerOwner, true
	case op != proto.OpCreateTTL:
		return 0, true
	case c.TTL <= 0 || c.TTL > proto.MaxTTL:
		return 0, false
	case p&tree.Emulate353TTL != 0:
		return containerOwner | c.TTL, true
	}
	return ttlOwner | c.TTL, true
}

// Changes appends the transaction's changes of the tree. The failure of a request, or of one
// operation of a multi, is a change that only has a code.
func (tx *Txn) Changes(dst []tree.Change, p tree.Policy) []tree.Change {
	m, multi := tx.Body.(*MultiTxn)
	if !multi {
		return append(dst, changeOf(tx.Type, tx.Body, p))
	}
	failed := false
	for i := range m.Ops {
		_, is := m.Ops[i].Body.(*ErrorTxn)
		failed = failed || is
	}
	for i := range m.Ops {
		c := changeOf(m.Ops[i].Type, m.Ops[i].Body, p)
		if failed && c.Op != proto.OpError {
			c = tree.Change{Op: proto.OpError} // it would have succeeded
		}
		dst = append(dst, c)
	}
	return dst
}

func changeOf(op proto.Op, body any, p tree.Policy) tree.Change {
	switch b := body.(type) {
	case *CreateTxn:
		if owner, creates := b.Owner(op, p); creates {
			return tree.Change{Op: op, Path: b.Path, Data: b.Data, ACL: b.ACL, Owner: owner, Ephemeral: b.Ephemeral, Version: b.ParentCversion}
		}
	case *DeleteTxn:
		return tree.Change{Op: op, Path: b.Path}
	case *SetDataTxn:
		return tree.Change{Op: op, Path: b.Path, Data: b.Data, Version: b.Version}
	case *SetACLTxn:
		return tree.Change{Op: op, Path: b.Path, ACL: b.ACL, Version: b.Version}
	case *CheckTxn:
		return tree.Change{Op: op, Path: b.Path}
	case *CloseSessionTxn:
		return tree.Change{Op: op}
	case *ErrorTxn:
		return tree.Change{Op: proto.OpError, Code: b.Code}
	}
	return tree.Change{Op: proto.OpCheck} // a session, or nothing: only the zxid changes
}
