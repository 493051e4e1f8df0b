package tree

import (
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/arena"
)

// Change is one change in the log of an Apache ZooKeeper server. Its numbers are results,
// not differences, and all checks are done.
type Change struct {
	Op        proto.Op // create, delete, setData, setACL, check, closeSession or error
	Path      string
	Data      []byte      // of create and setData
	ACL       []proto.ACL // of create and setACL
	Owner     int64       // of create: a container or a time to live, as ZooKeeper stores it
	Ephemeral bool        // of create: the transaction's session owns the znode
	Version   int32       // the new version of data or ACL; of create the parent's new child number
	Code      proto.Code  // of error
}

// Replay executes a transaction of Apache ZooKeeper under its own zxid and time, without
// checks of permissions, versions or quotas. op is the transaction's type; it only
// decides which reply the result contains. Like ZooKeeper, we skip a change that doesn't
// fit, i.e. the znode is missing or exists already. The caller must check whether the
// tree still equals ZooKeeper's (Digest).
//
// The tree copies the data that it keeps. The result is valid until the next transaction.
func (t *Tree) Replay(tx *Txn, op proto.Op, changes []Change) *Result {
	r := &t.result
	r.reset(op)
	x := exec{t, tx}
	for i := range changes {
		at := r
		if op == proto.OpMulti {
			r.Multi = append(r.Multi, Result{Op: changes[i].Op})
			at = &r.Multi[i]
		}
		x.replay(&changes[i], at)
		if at.Code != proto.Ok {
			at.Op = proto.OpError
		}
	}
	if op != proto.OpMulti {
		r.Op = op
	}
	t.zxid = tx.Zxid
	return r
}

// replay executes one change. Its events go into the tree's result.
func (t *exec) replay(c *Change, r *Result) {
	switch c.Op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		t.replayCreate(c, r)
	case proto.OpDelete, proto.OpDeleteContainer:
		t.replayDelete(c.Path)
	case proto.OpSetData, proto.OpReconfig:
		if n := t.get(c.Path); n != nil {
			delta := int64(len(c.Data)) - n.State().DataLen()
			t.put(n, c.Data, c.Version)
			stat(n, &r.Stat)
			t.charge(n.Path(), delta, 0)
			r.Data = n.Data()
			t.fire(proto.EventNodeDataChanged, n)
		}
	case proto.OpSetACL:
		if n := t.get(c.Path); n != nil {
			t.setList(n, c.ACL, c.Version)
			stat(n, &r.Stat)
		}
	case proto.OpCloseSession:
		t.closeSession()
	case proto.OpError:
		r.Code = c.Code
	}
}

func (t *exec) replayCreate(c *Change, r *Result) {
	slash := strings.LastIndexByte(c.Path, '/')
	if slash < 0 {
		return
	}
	parent := t.get(c.Path[:slash])
	if parent == nil || t.get(c.Path) != nil {
		return
	}
	kind, owner := kindUnder(c.Owner, t.tx.Policy, noSession), c.Owner
	if c.Ephemeral {
		kind, owner = arena.Ephemeral, t.tx.Session
	}
	n := t.arena.NewNode(&arena.State{
		Text: arena.NewText(kind, owner, c.Path, c.Data), ACL: t.acls.Intern(c.ACL),
		Czxid: t.tx.Zxid, Mzxid: t.tx.Zxid, Pzxid: t.tx.Zxid, Ctime: t.tx.Time, Mtime: t.tx.Time,
	}, t.epoch)
	cversion := c.Version
	if cversion == -1 { // ZooKeeper did not write it before 3.4
		cversion = parent.State().Cversion + 1
	}
	t.bear(parent, n, cversion-1)
	r.Path = n.Path()
	stat(n, &r.Stat)
	t.quotaCreated(n)
	t.fire(proto.EventNodeCreated, n)
	t.fire(proto.EventNodeChildrenChanged, parent)
}

// noSession is for owners that are no sessions.
func noSession(int64) bool { return false }

// replayDelete deletes a znode. ZooKeeper changes the parent even if the znode is gone.
func (t *exec) replayDelete(path string) {
	slash := strings.LastIndexByte(path, '/')
	if slash < 0 || undeletable(path) {
		return
	}
	parent, n := t.get(path[:slash]), t.get(path)
	switch {
	case parent == nil || n != nil && n.NumChildren() > 0:
	case n != nil:
		t.remove(n)
	case t.tx.Zxid > parent.State().Pzxid:
		t.edit(parent)
		parent.State().Pzxid = t.tx.Zxid
		t.commit(parent)
	}
}

// record adds a change to the transaction's changes. The change may alias the request.
func (t *exec) record(c Change) { *t.tx.Record = append(*t.tx.Record, c) }

// recordCreate records that c has created n. cversion is the parent's new child number.
func (t *exec) recordCreate(c *creation, n *node, cversion int32) {
	// A later operation of a multi may delete n, so we copy its path.
	change := Change{Op: c.op, Path: strings.Clone(n.Path()), Data: c.data, ACL: n.State().ACL.List(), Version: cversion}
	if n.Kind() == arena.Ephemeral {
		change.Ephemeral = true
	} else {
		change.Owner = n.Owner()
	}
	t.record(change)
}
