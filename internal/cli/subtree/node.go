package subtree

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
)

// Node is one znode of a subtree.
type Node struct {
	// Path is relative to the subtree's root: "" for the root itself, then "/a",
	// "/a/b".
	Path string
	// Data is nil for null data.
	Data []byte
	// ACL is nil if it wasn't read.
	ACL []client.ACL
	// Stat is the zero Stat if the znode comes from a file that has no stats. For a live znode, we
	// read the version of the data together with the data, and the same goes for the ACL and the
	// children.
	Stat client.Stat
	// Container and TTL are set only by files.
	Container bool
	TTL       time.Duration
	// Err is the reason why the znode couldn't be read; then only Path is set.
	Err error
}

// Ephemeral reports whether the znode belongs to a session.
func (n *Node) Ephemeral() bool { return n.Stat.EphemeralOwner != 0 }

// Source yields the znodes of a subtree, parents before children and siblings by name
// (see [Compare]). An error ends it.
type Source func(ctx context.Context) iter.Seq2[*Node, error]

// Compare orders paths like a source: a znode comes before its descendants, and its descendants
// before its next sibling.
func Compare(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] != b[i] {
			return cmp.Compare(rank(a[i]), rank(b[i]))
		}
	}
	return cmp.Compare(len(a), len(b))
}

// rank orders the end of a name before all characters that could continue it.
func rank(c byte) int {
	if c == '/' {
		return -1
	}
	return int(c)
}

// Join returns the full path of a znode in the subtree at root.
func Join(root, path string) string {
	switch {
	case path == "":
		return root
	case root == "/":
		return path
	}
	return root + path
}

// within reports whether path is root or below it.
func within(path, root string) bool {
	return root == "/" || path == root || strings.HasPrefix(path, root+"/")
}

// sameData distinguishes null data from empty data, like ZooKeeper.
func sameData(a, b []byte) bool {
	return bytes.Equal(a, b) && (a == nil) == (b == nil)
}

// sameACL compares ACLs regardless of the order of their entries.
func sameACL(a, b []client.ACL) bool {
	return slices.Equal(sortedACL(a), sortedACL(b))
}

func sortedACL(acl []client.ACL) []client.ACL {
	acl = slices.Clone(acl)
	slices.SortFunc(acl, func(x, y client.ACL) int {
		return cmp.Or(cmp.Compare(x.ID.Scheme, y.ID.Scheme), cmp.Compare(x.ID.ID, y.ID.ID), cmp.Compare(x.Perms, y.Perms))
	})
	return slices.Compact(acl)
}

// blanked reports whether the server has hidden a digest, because the client lacks the permission
// to administer the znode.
func blanked(acl []client.ACL) bool {
	for _, a := range acl {
		if a.ID.Scheme == "digest" && strings.HasSuffix(a.ID.ID, ":x") {
			return true
		}
	}
	return false
}

// system reports whether a path, with the chroot, is one of ZooKeeper's own znodes.
func system(c *client.Client, path string) bool {
	return within(c.FullPath(path), "/zookeeper")
}

func parentOf(path string) string {
	if p := proto.Parent(path); p != "/" {
		return p
	}
	return ""
}
