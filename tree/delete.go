package tree

import (
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// delete executes a client's delete. The znode's own list never protects it: the
// parent's DELETE permission decides, and is checked before the znode is looked
// up.
func (t *Tree) delete(tx *Txn, q *proto.DeleteRequest, events *[]Event) proto.Code {
	if q.Path == proto.NullString {
		return proto.ErrMarshalling
	}
	slash := strings.LastIndexByte(q.Path, '/')
	if slash < 0 || strings.IndexByte(q.Path, 0) >= 0 || undeletable(q.Path) {
		return proto.ErrBadArguments
	}
	parent := t.Get(q.Path[:slash])
	switch {
	case parent == nil:
		return proto.ErrNoNode
	case !tx.allowed(parent, proto.OpDelete.Perms()):
		return proto.ErrNoAuth
	}
	n := t.Get(q.Path)
	switch {
	case n == nil:
		return proto.ErrNoNode
	case !expected(n.version, q.Version):
		return proto.ErrBadVersion
	case n.NumChildren() > 0:
		return proto.ErrNotEmpty
	}
	t.remove(tx, n, events)
	return proto.Ok
}

// remove removes n, which has no children, from the tree.
func (t *Tree) remove(tx *Txn, n *Node, events *[]Event) {
	parent := t.nodes.parent(n)
	t.edit(parent)
	parent.pzxid = max(parent.pzxid, tx.Zxid)
	t.commit(parent)
	t.preserve(n)
	t.quotaChanges(n.path())
	t.detach(n)
	t.quotaDeleted(n)
	fire(events, proto.EventNodeDeleted, n, tx.Zxid)
	fire(events, proto.EventNodeChildrenChanged, parent, tx.Zxid)
	if !t.undo.deleted(n) {
		t.nodes.vacate(n)
	}
}

// undeletable reports whether path is one of ZooKeeper's own znodes.
func undeletable(path string) bool {
	return path == rootPath || path == procPath || path == quotaPath || path == ConfigPath
}

// expected reports whether version is the one that a request expects; −1 matches
// any version.
func expected(version, want int32) bool { return want == -1 || want == version }
