package tree

import (
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// delete executes a client's delete. The znode's own list never protects it: the
// parent's DELETE permission decides, and is checked before the znode is looked
// up.
func (t *exec) delete(q *proto.DeleteRequest) proto.Code {
	if q.Path == proto.NullString {
		return proto.ErrMarshalling
	}
	slash := strings.LastIndexByte(q.Path, '/')
	if slash < 0 || strings.IndexByte(q.Path, 0) >= 0 || undeletable(q.Path) {
		return proto.ErrBadArguments
	}
	parent := t.get(q.Path[:slash])
	switch {
	case parent == nil:
		return proto.ErrNoNode
	case !t.tx.allowed(parent, proto.OpDelete.Perms()):
		return proto.ErrNoAuth
	}
	n := t.get(q.Path)
	switch {
	case n == nil:
		return proto.ErrNoNode
	case !expected(n.State().Version, q.Version):
		return proto.ErrBadVersion
	case n.NumChildren() > 0:
		return proto.ErrNotEmpty
	}
	t.remove(n)
	if t.tx.Record != nil {
		t.record(Change{Op: proto.OpDelete, Path: q.Path})
	}
	return proto.Ok
}

// remove removes n, which has no children, from the tree.
func (t *exec) remove(n *node) {
	parent := t.arena.Parent(n)
	t.edit(parent)
	parent.State().Pzxid = max(parent.State().Pzxid, t.tx.Zxid)
	t.commit(parent)
	t.preserve(n)
	t.quotaChanges(n.Path())
	t.detach(n)
	t.quotaDeleted(n)
	t.fire(proto.EventNodeDeleted, n)
	t.fire(proto.EventNodeChildrenChanged, parent)
	if !t.undo.deleted(n) {
		t.arena.Vacate(n)
	}
}

// undeletable reports whether path is one of ZooKeeper's own znodes.
func undeletable(path string) bool {
	return path == rootPath || path == procPath || path == quotaPath || path == ConfigPath
}

// expected reports whether version is the one that a request expects; −1 matches
// any version.
func expected(version, want int32) bool { return want == -1 || want == version }
