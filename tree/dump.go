package tree

import (
	"bufio"
	"fmt"
	"io"
)

// Dump writes the whole tree as text: one line with the newest zxid and the totals, then
// one line per node in the order of the paths. Equal trees have the same text.
func (t *Tree) Dump(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "zxid=%#x nodes=%d ephemerals=%d size=%d digest=%#x full=%#x\n",
		t.zxid, t.NodeCount(), t.EphemeralCount(), t.DataSize(), t.Digest(), t.FullDigest())
	for _, n := range t.sorted() {
		data := "null"
		if n.Data() != nil {
			data = fmt.Sprintf("%q", n.Data())
		}
		fmt.Fprintf(b, "%q kind=%d owner=%#x czxid=%#x mzxid=%#x pzxid=%#x ctime=%d mtime=%d version=%d cversion=%d aversion=%d children=%d data=%s acl=",
			n.Path(), n.Kind(), uint64(n.Owner()), n.State().Czxid, n.State().Mzxid, n.State().Pzxid, n.State().Ctime, n.State().Mtime, n.State().Version, n.State().Cversion, n.State().Aversion, n.NumChildren(), data)
		for _, a := range n.State().ACL.List() {
			fmt.Fprintf(b, "%d:%q:%q ", a.Perms, a.ID.Scheme, a.ID.ID)
		}
		fmt.Fprintln(b)
	}
	return b.Flush()
}

// sorted returns all nodes in the order of their paths.
func (t *store) sorted() []*node {
	all := make(nodeSet, t.arena.Len())
	for n := range t.arena.All {
		all[n] = struct{}{}
	}
	return all.sorted()
}
