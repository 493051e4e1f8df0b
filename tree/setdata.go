package tree

import "github.com/zkgo/zkgo/proto"

// setData executes a setData. It checks the quota before the version.
func (t *exec) setData(q *proto.SetDataRequest, r *Result) proto.Code {
	n, code := t.target(q.Path, proto.OpSetData)
	if code != proto.Ok {
		return code
	}
	delta := int64(len(q.Data)) - n.State().DataLen()
	if code := t.checkQuota(n.Path(), delta, 0); code != proto.Ok {
		return code
	}
	if !expected(n.State().Version, q.Version) {
		return proto.ErrBadVersion
	}
	t.put(n, q.Data, n.State().Version+1)
	if t.tx.Record != nil {
		t.record(Change{Op: proto.OpSetData, Path: q.Path, Data: q.Data, Version: n.State().Version})
	}
	stat(n, &r.Stat)
	t.charge(n.Path(), delta, 0)
	t.fire(proto.EventNodeDataChanged, n)
	return proto.Ok
}

// put stores a copy of new data.
func (t *exec) put(n *node, data []byte, version int32) {
	t.edit(n)
	s := n.State()
	s.Rewrite(data, version)
	s.Mzxid, s.Mtime = t.tx.Zxid, t.tx.Time
	t.commit(n)
}

// target finds the znode of an op other than create and delete, and checks the
// permissions.
func (t *exec) target(path string, op proto.Op) (*node, proto.Code) {
	if proto.ValidatePath(path) != nil {
		return nil, proto.ErrBadArguments
	}
	n := t.get(path)
	switch {
	case n == nil:
		return nil, proto.ErrNoNode
	case !t.tx.allowed(n, op.Perms()):
		return nil, proto.ErrNoAuth
	}
	return n, proto.Ok
}

// check executes the check of a multi.
func (t *exec) check(q *proto.CheckVersionRequest) proto.Code {
	n, code := t.target(q.Path, proto.OpCheck)
	if code == proto.Ok && !expected(n.State().Version, q.Version) {
		return proto.ErrBadVersion
	}
	if code == proto.Ok && t.tx.Record != nil {
		t.record(Change{Op: proto.OpCheck, Path: q.Path, Version: q.Version})
	}
	return code
}

// setACL executes a setACL. It checks the list before it looks up the znode. The
// version is the version of the list.
func (t *exec) setACL(q *proto.SetACLRequest, r *Result) proto.Code {
	if proto.ValidatePath(q.Path) != nil {
		return proto.ErrBadArguments
	}
	acl, code := normalizeACL(t.aclBuf[:0], q.ACL, t.tx.IDs, t.tx.Policy)
	if code != proto.Ok {
		return code
	}
	t.aclBuf = acl
	n, code := t.target(q.Path, proto.OpSetACL)
	if code != proto.Ok {
		return code
	}
	if !expected(n.State().Aversion, q.Version) {
		return proto.ErrBadVersion
	}
	if t.tx.Policy&Full != 0 {
		return proto.ErrQuotaExceeded
	}
	t.setList(n, acl, n.State().Aversion+1)
	if t.tx.Record != nil {
		t.record(Change{Op: proto.OpSetACL, Path: q.Path, ACL: n.State().ACL.List(), Version: n.State().Aversion})
	}
	stat(n, &r.Stat)
	return proto.Ok
}

// setList stores a copy of a new access control list.
func (t *exec) setList(n *node, acl []proto.ACL, version int32) {
	t.edit(n)
	old := n.State().ACL
	n.State().ACL = t.acls.Intern(acl)
	t.acls.Release(old)
	n.State().Aversion = version
	t.commit(n)
}

// SetConfig writes the ensemble's membership to /zookeeper/config, as a reconfig and every
// new leader do. The znode gets the given version; ZooKeeper's ensembles keep it at −1. The
// result describes a reconfig. We fire NodeDataChanged only if the text changes, so that a
// mere change of leader doesn't wake every client that watches the membership.
func (t *Tree) SetConfig(tx *Txn, text []byte, version int32) *Result {
	r := &t.result
	r.reset(proto.OpReconfig)
	x := exec{t, tx}
	n := t.get(ConfigPath)
	changed := string(n.Data()) != string(text)
	if text == nil {
		text = []byte{} // clients of the config znode don't expect null
	}
	x.put(n, text, version)
	if tx.Record != nil {
		x.record(Change{Op: proto.OpSetData, Path: ConfigPath, Data: text, Version: version})
	}
	stat(n, &r.Stat)
	r.Data = n.Data()
	if changed {
		x.fire(proto.EventNodeDataChanged, n)
	}
	t.zxid = tx.Zxid
	return r
}
