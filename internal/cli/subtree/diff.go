package subtree

import (
	"context"
	"iter"
	"strings"
)

// Difference is a difference between two subtrees.
type Difference struct {
	// Path is the path below the roots.
	Path string
	// A and B are the znodes, nil if missing.
	A, B *Node
	// Fields names the fields that differ if both znodes exist: "data", "acl",
	// "kind".
	Fields []string
}

// String returns a short description.
func (d *Difference) String() string {
	path := d.Path
	if path == "" {
		path = "/"
	}
	switch {
	case d.B == nil:
		return path + " is missing in the second subtree"
	case d.A == nil:
		return path + " is missing in the first subtree"
	}
	return path + " differs in " + strings.Join(d.Fields, ", ")
}

// DiffOptions exclude parts from the comparison.
type DiffOptions struct {
	// NoACL and NoData exclude ACLs and data.
	NoACL, NoData bool
	// NoEphemerals excludes ephemeral znodes on either side.
	NoEphemerals bool
}

// Diff compares two subtrees and calls found for every difference as it is found, in the
// order of [Compare]. We stop at an error from found and at a znode that we can't read.
// Diff returns the number of znodes compared.
func Diff(ctx context.Context, a, b Source, o DiffOptions, found func(*Difference) error) (int, error) {
	n := 0
	for p, err := range pairs(ctx, a, b) {
		if err != nil {
			return n, err
		}
		if err := p.readable(); err != nil {
			return n, err
		}
		n++
		if d := p.difference(o); d != nil {
			if err := found(d); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// pair contains the znodes of two subtrees at one path.
type pair struct {
	path string
	a, b *Node
}

// pairs iterates over two sources in parallel.
func pairs(ctx context.Context, a, b Source) iter.Seq2[pair, error] {
	return func(yield func(pair, error) bool) {
		nextA, stopA := iter.Pull2(a(ctx))
		defer stopA()
		nextB, stopB := iter.Pull2(b(ctx))
		defer stopB()
		x, errA, okA := nextA()
		y, errB, okB := nextB()
		for okA || okB {
			if errA != nil || errB != nil {
				if errA == nil {
					errA = errB
				}
				yield(pair{}, errA)
				return
			}
			var order int
			switch {
			case !okA:
				order = 1
			case !okB:
				order = -1
			default:
				order = Compare(x.Path, y.Path)
			}
			var p pair
			if order <= 0 {
				p.path, p.a = x.Path, x
			}
			if order >= 0 {
				p.path, p.b = y.Path, y
			}
			if !yield(p, nil) {
				return
			}
			if order <= 0 {
				x, errA, okA = nextA()
			}
			if order >= 0 {
				y, errB, okB = nextB()
			}
		}
	}
}

func (p *pair) readable() error {
	for _, n := range []*Node{p.a, p.b} {
		if n != nil && n.Err != nil {
			return n.Err
		}
	}
	return nil
}

// difference compares the znodes. It returns nil if they are equal.
func (p *pair) difference(o DiffOptions) *Difference {
	a, b := p.a, p.b
	if o.NoEphemerals && a != nil && a.Ephemeral() {
		a = nil
	}
	if o.NoEphemerals && b != nil && b.Ephemeral() {
		b = nil
	}
	d := &Difference{Path: p.path, A: a, B: b}
	switch {
	case a == nil && b == nil:
		return nil
	case a == nil || b == nil:
		return d
	}
	if !o.NoData && !sameData(a.Data, b.Data) {
		d.Fields = append(d.Fields, "data")
	}
	if !o.NoACL && a.ACL != nil && b.ACL != nil && !sameACL(a.ACL, b.ACL) {
		d.Fields = append(d.Fields, "acl")
	}
	if a.Ephemeral() != b.Ephemeral() {
		d.Fields = append(d.Fields, "kind")
	}
	if d.Fields == nil {
		return nil
	}
	return d
}

// nothing is the source of a missing tree.
func nothing(context.Context) iter.Seq2[*Node, error] {
	return func(func(*Node, error) bool) {}
}
