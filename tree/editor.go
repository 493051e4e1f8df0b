package tree

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/arena"
)

// editor changes a store. It saves the old state for snapshots and for the running multi.
type editor struct {
	store
	epoch uint32      // number of snapshots so far
	snaps []*Snapshot // snapshots that still need images
	undo  journal     // of the multi that is running
}

// plantAll adds the initial nodes to an empty tree.
func (t *editor) plantAll() {
	t.plant(rootPath, 0, openACL)
	t.plant(procPath, 0, openACL)
	t.plant(quotaPath, 0, openACL)
	t.plant(ConfigPath, -1, readACL)
}

// The lists of the initial nodes. Functions return them, so that no code can change
// a shared variable.
func openACL() []proto.ACL { return proto.OpenACL() }
func readACL() []proto.ACL {
	return []proto.ACL{{Perms: proto.PermRead, ID: proto.ID{Scheme: "world", ID: "anyone"}}}
}

// plant adds one of the initial nodes.
func (t *editor) plant(path string, aversion int32, acl func() []proto.ACL) {
	n := t.arena.NewNode(&arena.State{Text: arena.NewText(arena.Persistent, 0, path, []byte{}), Aversion: aversion, ACL: t.acls.Intern(acl())}, t.epoch)
	if path == rootPath {
		t.root = n
		t.attach(nil, n)
	} else {
		t.attach(t.get(proto.Parent(path)), n)
	}
}

// edit must be called before a node in the tree is changed. It saves the node's
// old state for snapshots and for a running multi, and subtracts the node from
// the totals.
func (t *editor) edit(n *node) {
	t.preserve(n)
	t.quotaChanges(n.Path())
	t.undo.changed(n)
	t.uncount(n)
}

// commit adds a changed node to the totals again.
func (t *editor) commit(n *node) { t.count(n) }
