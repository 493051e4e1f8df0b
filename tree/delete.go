package tree

import (
	"slices"
	"strings"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/arena"
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

// expected reports whether version matches the version in a request; −1 matches any
// version.
func expected(version, want int32) bool { return want == -1 || want == version }

// Reap asks for the removal of a container, or of a znode with an expired time to live.
// The leader proposes it (OpDeleteContainer). The two zxids identify the znode and the
// data that the leader saw: a later change prevents the removal.
type Reap struct {
	Path         string
	Czxid, Mzxid int64
}

// Decode reads r.
func (r *Reap) Decode(d *proto.Reader) {
	r.Path = d.String()
	r.Czxid = d.Long()
	r.Mzxid = d.Long()
}

// Append appends r to b.
func (r *Reap) Append(b []byte) []byte {
	b = proto.AppendString(b, r.Path)
	b = proto.AppendLong(b, r.Czxid)
	return proto.AppendLong(b, r.Mzxid)
}

// Reapable returns up to limit removals that are due: containers that lost their last
// child, containers that never had a child for longer than maxNeverUsed (0: these stay),
// and znodes without children that haven't been modified for longer than their time to
// live. now is in milliseconds, as in Txn.
func (t *Tree) Reapable(now int64, maxNeverUsed time.Duration, limit int) []Reap {
	var due []Reap
	for n := range t.containers {
		if len(due) >= limit {
			break
		}
		age := now - n.State().Mtime
		switch {
		case n.NumChildren() > 0:
			continue
		case n.Kind() == arena.TTL && age <= timeToLive(n):
			continue
		case n.Kind() == arena.Container && n.State().Cversion <= 0 && (maxNeverUsed <= 0 || age <= maxNeverUsed.Milliseconds()):
			continue
		}
		due = append(due, Reap{n.Path(), n.State().Czxid, n.State().Mzxid})
	}
	slices.SortFunc(due, func(a, b Reap) int { return strings.Compare(a.Path, b.Path) })
	return due
}

// reap executes a removal if it is still due.
func (t *exec) reap(q *Reap) proto.Code {
	n := t.get(q.Path)
	switch {
	case n == nil:
		return proto.ErrNoNode
	case n.NumChildren() > 0:
		return proto.ErrNotEmpty
	case n.Kind() != arena.Container && n.Kind() != arena.TTL, n.State().Czxid != q.Czxid, n.State().Mzxid != q.Mzxid:
		return proto.ErrBadVersion
	case n.Kind() == arena.TTL && t.tx.Time-n.State().Mtime <= timeToLive(n):
		return proto.ErrBadVersion
	}
	t.remove(n)
	if t.tx.Record != nil {
		t.record(Change{Op: proto.OpDeleteContainer, Path: q.Path})
	}
	return proto.Ok
}
