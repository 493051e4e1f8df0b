package inspect

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// Difference is a znode that differs between two snapshots.
type Difference struct {
	Path   string   `json:"path"`
	Change string   `json:"change"`         // added, removed, changed
	What   []string `json:"what,omitempty"` // for a changed znode: data, acl, version, owner, …
	Before string   `json:"before,omitempty"`
	After  string   `json:"after,omitempty"`
}

// The kinds of Difference.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// Comparison is the result of Compare.
type Comparison struct {
	Before      *Image       `json:"before"`
	After       *Image       `json:"after"`
	Differences []Difference `json:"differences"`
	// SessionsAdded and SessionsRemoved are session ids.
	SessionsAdded   []Hex `json:"sessionsAdded"`
	SessionsRemoved []Hex `json:"sessionsRemoved"`
}

// Compare returns the differences between two snapshots at and below root, ordered by
// path. Without stats it compares only what clients write: data, ACLs, owners.
func Compare(before, after *Image, root string, stats bool) (*Comparison, error) {
	c := &Comparison{Before: before, After: after, Differences: []Difference{}, SessionsAdded: []Hex{}, SessionsRemoved: []Hex{}}
	a, b := before.Tree.Get(root), after.Tree.Get(root)
	if a == nil && b == nil {
		return nil, fmt.Errorf("neither snapshot has a znode %s", root)
	}
	c.nodes(a, b, stats)
	old, now := ids(before), ids(after)
	c.SessionsAdded, c.SessionsRemoved = without(now, old), without(old, now)
	return c, nil
}

func ids(img *Image) []Hex {
	list := make([]Hex, len(img.Sessions))
	for i, s := range img.Sessions {
		list[i] = s.ID
	}
	return list
}

// without returns the elements of a that aren't in b.
func without(a, b []Hex) []Hex {
	in := make(map[Hex]bool, len(b))
	for _, id := range b {
		in[id] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(id Hex) bool { return in[id] })
}

// nodes compares two znodes with the same path and their subtrees; nil means no
// znode.
func (c *Comparison) nodes(a, b *tree.Node, stats bool) {
	switch {
	case a == nil:
		walk(c.After.Tree, b, func(n *tree.Node) {
			c.Differences = append(c.Differences, Difference{Path: n.Path(), Change: Added, After: show(n)})
		})
		return
	case b == nil:
		walk(c.Before.Tree, a, func(n *tree.Node) {
			c.Differences = append(c.Differences, Difference{Path: n.Path(), Change: Removed, Before: show(n)})
		})
		return
	}
	if what := differing(a, b, stats); len(what) > 0 {
		c.Differences = append(c.Differences, Difference{a.Path(), Changed, what, show(a), show(b)})
	}
	names := slices.AppendSeq(slices.Collect(c.Before.Tree.Children(a)), c.After.Tree.Children(b))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		path := below(a.Path(), name)
		c.nodes(c.Before.Tree.Get(path), c.After.Tree.Get(path), stats)
	}
}

// differing returns the names of the properties that differ.
func differing(a, b *tree.Node, stats bool) []string {
	var what []string
	note := func(same bool, name string) {
		if !same {
			what = append(what, name)
		}
	}
	var x, y proto.Stat
	a.Stat(&x)
	b.Stat(&y)
	note(bytes.Equal(a.Data(), b.Data()) && (a.Data() == nil) == (b.Data() == nil), "data")
	note(slices.Equal(a.ACL(), b.ACL()), "acl")
	note(x.EphemeralOwner == y.EphemeralOwner, "owner")
	if !stats {
		return what
	}
	note(x.Version == y.Version, "version")
	note(x.Cversion == y.Cversion, "cversion")
	note(x.Aversion == y.Aversion, "aversion")
	note(x.Czxid == y.Czxid, "czxid")
	note(x.Mzxid == y.Mzxid, "mzxid")
	note(x.Pzxid == y.Pzxid, "pzxid")
	note(x.Ctime == y.Ctime, "ctime")
	note(x.Mtime == y.Mtime, "mtime")
	return what
}

// show describes a znode in one line.
func show(n *tree.Node) string {
	var st proto.Stat
	n.Stat(&st)
	const most = 60
	data := fmt.Sprintf("%d bytes", len(n.Data()))
	if n.Data() == nil {
		data = "no data"
	} else if len(n.Data()) <= most {
		data = fmt.Sprintf("%q", n.Data())
	}
	s := fmt.Sprintf("%s version=%d mzxid=%v", data, st.Version, Hex(st.Mzxid))
	if acl := n.ACL(); !slices.Equal(acl, proto.OpenACL()) {
		s += " acl="
		for i, a := range acl {
			if i > 0 {
				s += ","
			}
			s += fmt.Sprintf("%s:%s:%s", a.ID.Scheme, a.ID.ID, letters(a.Perms))
		}
	}
	if st.EphemeralOwner != 0 {
		s += fmt.Sprintf(" owner=%v", Hex(st.EphemeralOwner))
	}
	return s
}

// letters returns ZooKeeper's letters for permissions.
func letters(p proto.Perms) string {
	var s string
	for i, l := range "rwcda" {
		if p&(1<<i) != 0 {
			s += string(l)
		}
	}
	return s
}

// Text writes the comparison in human-readable form: one line for an added or removed
// znode, three for a changed one.
func (c *Comparison) Text(w io.Writer) error {
	fmt.Fprintf(w, "--- %s at zxid %v\n+++ %s at zxid %v\n", c.Before.Path, c.Before.Zxid, c.After.Path, c.After.Zxid)
	for _, d := range c.Differences {
		switch d.Change {
		case Added:
			fmt.Fprintf(w, "+ %q %s\n", d.Path, d.After)
		case Removed:
			fmt.Fprintf(w, "- %q %s\n", d.Path, d.Before)
		default:
			fmt.Fprintf(w, "! %q %s\n    - %s\n    + %s\n", d.Path, strings.Join(d.What, " "), d.Before, d.After)
		}
	}
	for _, id := range c.SessionsRemoved {
		fmt.Fprintf(w, "- session %v\n", id)
	}
	for _, id := range c.SessionsAdded {
		fmt.Fprintf(w, "+ session %v\n", id)
	}
	_, err := fmt.Fprintf(w, "%d znodes differ, %d sessions ended, %d began\n", len(c.Differences), len(c.SessionsRemoved), len(c.SessionsAdded))
	return err
}
