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
	// Path below the subtree's root: "" for the root itself, then "/a", "/a/b".
	Path string
	// Data is nil for null data.
	Data []byte
	// ACL is nil if it was not read.
	ACL []client.ACL
	// Stat is the zero Stat for what was read from a file that has none. Of a
	// living znode the version of the data, of the ACL and of the children are
	// those that were read with them.
	Stat client.Stat
	// Container and TTL are told by files only.
	Container bool
	TTL       time.Duration
	// Err is why the znode could not be read: then there is a path only.
	Err error
}

// Ephemeral reports whether the znode belongs to a session.
func (n *Node) Ephemeral() bool { return n.Stat.EphemeralOwner != 0 }

// Source gives the znodes of a subtree, parents before children and siblings by
// name ([Compare]). An error ends it.
type Source func(ctx context.Context) iter.Seq2[*Node, error]

// Compare orders paths as sources do: a znode comes before those below it, and
// those before its next sibling.
func Compare(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] != b[i] {
			return cmp.Compare(rank(a[i]), rank(b[i]))
		}
	}
	return cmp.Compare(len(a), len(b))
}

// rank puts the end of a name before all that a longer name could go on with.
func rank(c byte) int {
	if c == '/' {
		return -1
	}
	return int(c)
}

// Join returns the path of a znode of the subtree at root.
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

// sameData tells null data from empty ones, as ZooKeeper does.
func sameData(a, b []byte) bool {
	return bytes.Equal(a, b) && (a == nil) == (b == nil)
}

// sameACL compares what is granted to whom: the order of the entries means nothing.
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

// blanked reports whether the server has hidden a digest: it does so for who may
// not administer the znode.
func blanked(acl []client.ACL) bool {
	for _, a := range acl {
		if a.ID.Scheme == "digest" && strings.HasSuffix(a.ID.ID, ":x") {
			return true
		}
	}
	return false
}

// system reports whether a path is ZooKeeper's own, as its servers see it.
func system(c *client.Client, path string) bool {
	return within(c.FullPath(path), "/zookeeper")
}

func parentOf(path string) string {
	if p := proto.Parent(path); p != "/" {
		return p
	}
	return ""
}
