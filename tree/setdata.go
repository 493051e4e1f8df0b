package tree

import "github.com/zkgo/zkgo/proto"

// setData executes a setData. It checks the quota before the version.
func (t *Tree) setData(tx *Txn, q *proto.SetDataRequest, r *Result, events *[]Event) proto.Code {
	n, code := t.target(tx, q.Path, proto.OpSetData)
	if code != proto.Ok {
		return code
	}
	delta := int64(len(q.Data)) - n.dataLen()
	if code := t.checkQuota(tx, n.path(), delta, 0); code != proto.Ok {
		return code
	}
	if !expected(n.version, q.Version) {
		return proto.ErrBadVersion
	}
	t.put(tx, n, q.Data, n.version+1)
	n.Stat(&r.Stat)
	t.charge(n.path(), delta, 0)
	fire(events, proto.EventNodeDataChanged, n, tx.Zxid)
	return proto.Ok
}

// put stores a copy of new data.
func (t *Tree) put(tx *Txn, n *Node, data []byte, version int32) {
	t.edit(n)
	n.rewrite(data, version)
	n.mzxid, n.mtime = tx.Zxid, tx.Time
	t.commit(n)
}

// target finds the znode of an op other than create and delete, and checks the
// permissions.
func (t *Tree) target(tx *Txn, path string, op proto.Op) (*Node, proto.Code) {
	if proto.ValidatePath(path) != nil {
		return nil, proto.ErrBadArguments
	}
	n := t.Get(path)
	switch {
	case n == nil:
		return nil, proto.ErrNoNode
	case !tx.allowed(n, op.Perms()):
		return nil, proto.ErrNoAuth
	}
	return n, proto.Ok
}

// check executes the check of a multi.
func (t *Tree) check(tx *Txn, q *proto.CheckVersionRequest) proto.Code {
	n, code := t.target(tx, q.Path, proto.OpCheck)
	if code == proto.Ok && !expected(n.version, q.Version) {
		return proto.ErrBadVersion
	}
	return code
}

// setACL executes a setACL. It checks the list before it looks up the znode. The
// version is that of the list.
func (t *Tree) setACL(tx *Txn, q *proto.SetACLRequest, r *Result) proto.Code {
	if proto.ValidatePath(q.Path) != nil {
		return proto.ErrBadArguments
	}
	acl, code := normalizeACL(t.aclBuf[:0], q.ACL, tx.IDs, tx.Policy)
	if code != proto.Ok {
		return code
	}
	t.aclBuf = acl
	n, code := t.target(tx, q.Path, proto.OpSetACL)
	if code != proto.Ok {
		return code
	}
	if !expected(n.aversion, q.Version) {
		return proto.ErrBadVersion
	}
	if tx.Policy&Full != 0 {
		return proto.ErrQuotaExceeded
	}
	t.edit(n)
	old := n.acl
	n.acl = t.acls.intern(acl)
	t.acls.release(old)
	n.aversion++
	t.commit(n)
	n.Stat(&r.Stat)
	return proto.Ok
}

// SetConfig writes the ensemble's membership to /zookeeper/config, as a reconfig and every
// new leader do. The znode gets the given version; ZooKeeper's ensembles keep it at −1. The
// result is that of a reconfig. We fire NodeDataChanged only if the text changes, so that a
// mere change of leader doesn't wake every client that watches the membership.
func (t *Tree) SetConfig(tx *Txn, text []byte, version int32) *Result {
	r := &t.result
	r.reset(proto.OpReconfig)
	n := t.Get(ConfigPath)
	changed := string(n.bytes()) != string(text)
	if text == nil {
		text = []byte{} // clients of the config znode don't expect null
	}
	t.put(tx, n, text, version)
	n.Stat(&r.Stat)
	r.Data = n.bytes()
	if changed {
		fire(&r.Events, proto.EventNodeDataChanged, n, tx.Zxid)
	}
	t.zxid = tx.Zxid
	return r
}
