package subtree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
)

// Document is a validated file with a subtree.
type Document struct {
	// Root is the subtree's path at the time of the export.
	Root string
	// Count is the number of znodes.
	Count int
	// Ephemerals is the number of ephemeral znodes.
	Ephemerals int

	r      io.ReadSeeker
	sorted []*Node // nil if the file is sorted
}

// Read validates a complete file, written by [Export] or by hand, so that we never use a
// part of a truncated or invalid file. The first character determines the format. The file
// must not change while the Document is in use. If the file isn't in the order of
// [Compare], we keep all znodes in memory, otherwise one at a time.
func Read(r io.ReadSeeker) (*Document, error) {
	d := &Document{r: r}
	var path string
	var above ancestors
	var orphan error // valid as long as the file is sorted
	unordered := false
	head, err := d.scan(func(n *Node) error {
		if d.Count > 0 {
			switch order := Compare(path, n.Path); {
			case order == 0:
				return fmt.Errorf("duplicate znode %s", Join("/", n.Path))
			case order > 0:
				unordered = true
			}
		}
		path = n.Path
		if !unordered && orphan == nil {
			orphan = above.add(n)
		}
		d.Count++
		if n.Ephemeral() {
			d.Ephemerals++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.Root = string(head.Root)
	switch {
	case d.Count == 0:
		return nil, errors.New("contains no znodes")
	case unordered:
		return d, d.sort()
	}
	return d, orphan
}

// sort loads all znodes into memory, and checks that no parent is missing.
func (d *Document) sort() error {
	d.sorted = make([]*Node, 0, d.Count)
	if _, err := d.scan(func(n *Node) error {
		d.sorted = append(d.sorted, n)
		return nil
	}); err != nil {
		return err
	}
	slices.SortFunc(d.sorted, func(a, b *Node) int { return Compare(a.Path, b.Path) })
	var above ancestors
	for _, n := range d.sorted {
		if err := above.add(n); err != nil {
			return err
		}
	}
	return nil
}

// ancestors contains the last znode in the order of [Compare], and its ancestors.
type ancestors []*Node

// add checks that the next znode has its parent.
func (a *ancestors) add(n *Node) error {
	above := *a
	switch {
	case len(above) == 0 && n.Path != "":
		return fmt.Errorf("%s: the root, /, is missing", n.Path)
	case len(above) > 0 && above[len(above)-1].Path == n.Path:
		return fmt.Errorf("duplicate znode %s", Join("/", n.Path))
	}
	for len(above) > 0 && above[len(above)-1].Path != parentOf(n.Path) {
		above = above[:len(above)-1]
	}
	switch {
	case len(above) == 0 && n.Path != "":
		return fmt.Errorf("%s has no parent in the file", n.Path)
	case len(above) > 0 && above[len(above)-1].Ephemeral():
		return fmt.Errorf("%s: its parent is ephemeral and cannot have children", n.Path)
	}
	*a = append(above, n)
	return nil
}

// Source yields the znodes of the file. Only one iteration at a time may be in use.
func (d *Document) Source() Source {
	return func(ctx context.Context) iter.Seq2[*Node, error] {
		return func(yield func(*Node, error) bool) {
			if d.sorted != nil {
				for _, n := range d.sorted {
					if !yield(n, nil) {
						return
					}
				}
				return
			}
			enough := errors.New("enough")
			_, err := d.scan(func(n *Node) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				if !yield(n, nil) {
					return enough
				}
				return nil
			})
			if err != nil && !errors.Is(err, enough) {
				yield(nil, err)
			}
		}
	}
}

// scan reads the whole file and calls each for every znode.
func (d *Document) scan(each func(*Node) error) (header, error) {
	if _, err := d.r.Seek(0, io.SeekStart); err != nil {
		return header{}, err
	}
	r, format, err := detect(d.r)
	if err != nil {
		return header{}, err
	}
	count := 0
	next := func(r *record) error {
		count++
		n, err := r.node()
		if err == nil {
			err = each(n)
		}
		if err != nil {
			return fmt.Errorf("znode %d: %w", count, err)
		}
		return nil
	}
	if format == JSON {
		return scanJSON(r, next)
	}
	return scanYAML(r, next)
}
