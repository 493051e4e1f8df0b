package zktxn

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// Append appends the encoding of the transaction, which Decode reads. The digest follows if
// there is one.
func (tx *Txn) Append(b []byte) []byte {
	b = proto.AppendLong(b, tx.Session)
	b = proto.AppendInt(b, tx.Cxid)
	b = proto.AppendLong(b, tx.Zxid)
	b = proto.AppendLong(b, tx.Time)
	b = proto.AppendInt(b, int32(tx.Type))
	b = appendBody(b, tx.Type, tx.Body)
	if tx.Digest != nil {
		b = proto.AppendInt(b, tx.Digest.Version)
		b = proto.AppendLong(b, int64(tx.Digest.Value))
	}
	return b
}

func appendBody(b []byte, op proto.Op, body any) []byte {
	switch c := body.(type) {
	case *CreateTxn:
		b = proto.AppendACLs(proto.AppendBuffer(proto.AppendString(b, c.Path), c.Data), c.ACL)
		if op == proto.OpCreate || op == proto.OpCreate2 {
			b = proto.AppendBool(b, c.Ephemeral)
		}
		b = proto.AppendInt(b, c.ParentCversion)
		if op == proto.OpCreateTTL {
			b = proto.AppendLong(b, c.TTL)
		}
	case *DeleteTxn:
		b = proto.AppendString(b, c.Path)
	case *SetDataTxn:
		b = proto.AppendInt(proto.AppendBuffer(proto.AppendString(b, c.Path), c.Data), c.Version)
	case *SetACLTxn:
		b = proto.AppendInt(proto.AppendACLs(proto.AppendString(b, c.Path), c.ACL), c.Version)
	case *CheckTxn:
		b = proto.AppendInt(proto.AppendString(b, c.Path), c.Version)
	case *CreateSessionTxn:
		b = append(proto.AppendInt(b, c.Timeout), c.Password...)
	case *CloseSessionTxn:
		b = proto.AppendStrings(b, c.Paths)
	case *ErrorTxn:
		b = proto.AppendInt(b, int32(c.Code))
	case *MultiTxn:
		b = proto.AppendInt(b, int32(len(c.Ops)))
		for i := range c.Ops {
			sub := &c.Ops[i]
			b = proto.AppendInt(b, int32(sub.Type))
			b = proto.AppendBuffer(b, appendBody([]byte{}, sub.Type, sub.Body))
		}
	}
	return b
}

// BodyOf is the inverse of Changes: it returns the body of a transaction with the changes that
// tree.Apply has recorded. A single change is a transaction of its own type; all changes of a multi
// are one transaction.
func BodyOf(op proto.Op, changes []tree.Change) (proto.Op, any) {
	if op != proto.OpMulti {
		return changes[0].Op, bodyOf(&changes[0])
	}
	m := &MultiTxn{Ops: make([]MultiOp, len(changes))}
	for i := range changes {
		m.Ops[i] = MultiOp{changes[i].Op, bodyOf(&changes[i])}
	}
	return proto.OpMulti, m
}

func bodyOf(c *tree.Change) any {
	switch c.Op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		acl := c.ACL
		if acl == nil {
			acl = []proto.ACL{} // ZooKeeper can't read null
		}
		txn := &CreateTxn{Path: c.Path, Data: c.Data, ACL: acl, Ephemeral: c.Ephemeral, ParentCversion: c.Version}
		if c.Op == proto.OpCreateTTL {
			txn.TTL = c.Owner &^ ttlOwner
		}
		return txn
	case proto.OpDelete, proto.OpDeleteContainer:
		return &DeleteTxn{Path: c.Path}
	case proto.OpSetACL:
		return &SetACLTxn{Path: c.Path, ACL: c.ACL, Version: c.Version}
	case proto.OpCheck:
		return &CheckTxn{Path: c.Path, Version: c.Version}
	case proto.OpError:
		return &ErrorTxn{Code: c.Code}
	}
	return &SetDataTxn{Path: c.Path, Data: c.Data, Version: c.Version}
}
