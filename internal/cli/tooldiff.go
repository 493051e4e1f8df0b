package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/subtree"
)

func diffCommand() Command {
	return Command{
		Name:        "diff",
		Verb:        "diff first second",
		Usage:       "[-noacl] [-nodata] [-noephemerals] [-q] first second",
		Short:       "compare two subtrees, each a path, host:port/path or file:name of an export; exit code 1 if they differ",
		ListOptions: true,
		Options: []Option{
			{Name: "noacl", Help: "do not compare ACLs"},
			{Name: "nodata", Help: "do not compare data"},
			{Name: "noephemerals", Help: "ignore ephemeral znodes"},
			{Name: "q", Long: "brief", Help: "print only whether they differ"},
		},
		Least: 2,
		Most:  2,
		Run:   runDiff,
	}
}

// difference is the printed form of a subtree.Difference.
type difference struct {
	Path   string     `json:"path"`
	Only   string     `json:"only,omitempty"` // first or second
	Fields []string   `json:"differ,omitempty"`
	First  *znodeInfo `json:"first,omitempty"`
	Second *znodeInfo `json:"second,omitempty"`
}

// errDiffer stops a comparison at the first difference.
var errDiffer = errors.New("they differ")

func runDiff(ctx context.Context, c *Call) error {
	trouble := func(err error) error { return &Exit{Code: 2, Message: "diff: " + plainWords(err), Err: err} }
	o := subtree.DiffOptions{NoACL: c.Has("noacl"), NoData: c.Has("nodata"), NoEphemerals: c.Has("noephemerals")}
	a, doneA, err := c.source(ctx, c.Args[0], o)
	if err != nil {
		return trouble(err)
	}
	defer doneA()
	b, doneB, err := c.source(ctx, c.Args[1], o)
	if err != nil {
		return trouble(err)
	}
	defer doneB()
	differences := 0
	compared, err := subtree.Diff(ctx, a, b, o, func(d *subtree.Difference) error {
		differences++
		if c.Has("q") {
			return errDiffer
		}
		return c.showDifference(d)
	})
	if err != nil && !errors.Is(err, errDiffer) {
		return trouble(err)
	}
	if differences == 0 {
		return c.text(func(w io.Writer) { fmt.Fprintf(w, "%s compared, no difference\n", plural(compared, "znode")) })
	}
	if c.Has("q") {
		fmt.Fprintf(c.Err, "%s and %s differ\n", c.Args[0], c.Args[1])
	} else {
		fmt.Fprintf(c.Err, "%s compared, %s\n", plural(compared, "znode"), plural(differences, "difference"))
	}
	return &Exit{Code: 1}
}

// source returns the source for an argument of diff.
func (c *Call) source(ctx context.Context, arg string, o subtree.DiffOptions) (subtree.Source, func(), error) {
	if name, file := strings.CutPrefix(arg, "file:"); file {
		doc, done, err := c.document(name)
		if err != nil {
			return nil, nil, err
		}
		return doc.Source(), done, nil
	}
	p, done, err := c.place(ctx, arg)
	if err != nil {
		return nil, nil, err
	}
	// We sync because a server may lag behind recent writes.
	if err := p.Client.Sync(ctx, p.Root); err != nil && !errors.Is(err, client.ErrNotReadOnly) {
		done()
		return nil, nil, err
	}
	return subtree.Walk(p.Client, p.Root, subtree.WalkOptions{NoACL: o.NoACL, NoData: o.NoData}), done, nil
}

func (c *Call) showDifference(d *subtree.Difference) error {
	path := subtree.Join("/", d.Path)
	out := difference{Path: path, Fields: d.Fields}
	mark := "~"
	switch {
	case d.A == nil:
		out.Only, mark = "second", "+"
	case d.B == nil:
		out.Only, mark = "first", "-"
	}
	for _, side := range []struct {
		n  *subtree.Node
		to **znodeInfo
	}{{d.A, &out.First}, {d.B, &out.Second}} {
		if side.n != nil {
			info := newInfo(path, side.n, true)
			*side.to = &info
		}
	}
	return c.Emit(out, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s", mark, path)
		if len(d.Fields) > 0 {
			fmt.Fprintf(w, "  (%s)", strings.Join(d.Fields, ", "))
		}
		fmt.Fprintln(w)
		for _, field := range d.Fields {
			first, second := sides(field, d)
			fmt.Fprintf(w, "    < %s\n    > %s\n", first, second)
		}
	})
}

// sides formats the two sides of a difference.
func sides(field string, d *subtree.Difference) (first, second string) {
	const width = 100
	show := func(n *subtree.Node) string {
		switch field {
		case "data":
			return shortData(n.Data, width)
		case "acl":
			return strings.Join(newInfo("", n, false).ACL, ", ")
		}
		if n.Ephemeral() {
			return "ephemeral " + hexID(n.Stat.EphemeralOwner)
		}
		return "not ephemeral"
	}
	first, second = show(d.A), show(d.B)
	if first == second { // their beginnings are equal
		first = fmt.Sprintf("%d bytes %s", len(d.A.Data), first)
		second = fmt.Sprintf("%d bytes %s", len(d.B.Data), second)
	}
	return first, second
}
