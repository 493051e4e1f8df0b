package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/zkgo/zkgo/internal/cli/subtree"
	"github.com/zkgo/zkgo/proto"
)

func treeCommand() Command {
	return Command{
		Name:        "tree",
		Verb:        "tree [path...]",
		Usage:       "[-depth n] [-data] [-l] [-a] [path...]",
		Short:       "show subtrees",
		ListOptions: true,
		Options: []Option{
			{Name: "depth", Arg: "n", Help: "levels below the path"},
			{Name: "data", Help: "show the data, truncated to a line"},
			{Name: "l", Long: "long", Help: "show size, version and time of the last write"},
			{Name: "a", Long: "all", Help: "include ZooKeeper's own znodes"},
		},
		Most: Any,
		Run:  runTree,
	}
}

func runTree(ctx context.Context, c *Call) error { return c.each(ctx, "/", c.tree) }

// tree prints the tree at one place.
func (c *Call) tree(ctx context.Context, arg string) error {
	p, done, err := c.place(ctx, arg)
	if err != nil {
		return err
	}
	defer done()
	depth, err := c.whole("depth", 1)
	if err != nil {
		return err
	}
	o := subtree.WalkOptions{Depth: int(depth), NoData: !c.Has("data"), NoACL: true, System: c.Has("a")}
	t := treePrinter{call: c, hidden: p.Client.FullPath(p.Root) == "/" && !o.System}
	for n, err := range subtree.Walk(p.Client, p.Root, o)(ctx) {
		if err != nil {
			return err
		}
		if err := t.print(p.Root, n); err != nil {
			return err
		}
	}
	return c.text(func(w io.Writer) {
		fmt.Fprintf(w, "\n%s, %s of data\n", plural(t.znodes, "znode"), byteCount(t.bytes))
	})
}

// text writes output that is omitted in JSON mode.
func (c *Call) text(write func(io.Writer)) error {
	if !c.JSON() {
		write(c.Out)
	}
	return nil
}

// treePrinter draws the lines next to the names.
type treePrinter struct {
	call   *Call
	hidden bool    // the root has a child that isn't shown
	left   []int32 // remaining children, per level
	znodes int
	bytes  int64
}

func (t *treePrinter) print(root string, n *subtree.Node) error {
	t.znodes++
	t.bytes += int64(n.Stat.DataLength)
	depth := strings.Count(n.Path, "/")
	t.left = t.left[:depth]
	var lead strings.Builder
	for i := range t.left {
		last := i == depth-1
		if last {
			t.left[i]--
		}
		switch {
		case last && t.left[i] > 0:
			lead.WriteString("├── ")
		case last:
			lead.WriteString("└── ")
		case t.left[i] > 0:
			lead.WriteString("│   ")
		default:
			lead.WriteString("    ")
		}
	}
	below := n.Stat.NumChildren
	if depth == 0 && t.hidden {
		below--
	}
	t.left = append(t.left, below)
	path := subtree.Join(root, n.Path)
	return t.call.Emit(newInfo(path, n, t.call.Has("data")), func(w io.Writer) {
		name := path
		if depth > 0 {
			name = proto.Base(path)
		}
		fmt.Fprintln(w, lead.String()+name+t.call.remarks(n))
	})
}

// remarks returns the details after a name.
func (c *Call) remarks(n *subtree.Node) string {
	if n.Err != nil {
		return "  [not readable]"
	}
	var b strings.Builder
	if n.Ephemeral() {
		b.WriteString("  [ephemeral " + hexID(n.Stat.EphemeralOwner) + "]")
	}
	if c.Has("l") {
		fmt.Fprintf(&b, "  [%s, version %d, %s]", byteCount(int64(n.Stat.DataLength)), n.Stat.Version, isoTime(n.Stat.Mtime))
	}
	if c.Has("data") && len(n.Data) > 0 {
		b.WriteString(" = " + shortData(n.Data, max(40, c.Term.Width-40)))
	}
	return b.String()
}

func duCommand() Command {
	return Command{
		Name:        "du",
		Verb:        "du [path...]",
		Usage:       "[-depth n] [path...]",
		Short:       "show the number of znodes and bytes of each subtree",
		ListOptions: true,
		Options:     []Option{{Name: "depth", Arg: "n", Help: "levels below the path (default 1)"}},
		Most:        Any,
		Run:         runDu,
	}
}

// subtreeUse is the size of a subtree.
type subtreeUse struct {
	Path       string `json:"path"`
	Znodes     int    `json:"znodes"`
	Ephemerals int    `json:"ephemerals"`
	Bytes      int64  `json:"bytes"`
}

func runDu(ctx context.Context, c *Call) error { return c.each(ctx, "/", c.du) }

// du prints the sizes at one place.
func (c *Call) du(ctx context.Context, arg string) error {
	depth, err := c.whole("depth", 0)
	if err != nil {
		return err
	}
	if !c.Has("depth") {
		depth = 1
	}
	p, done, err := c.place(ctx, arg)
	if err != nil {
		return err
	}
	defer done()
	var list []*subtreeUse
	var open []*subtreeUse // from the root to the current znode, down to the printed depth
	for n, err := range subtree.Walk(p.Client, p.Root, subtree.WalkOptions{NoData: true, NoACL: true})(ctx) {
		if err != nil {
			return err
		}
		level := strings.Count(n.Path, "/")
		if int64(level) <= depth {
			u := &subtreeUse{Path: subtree.Join(p.Root, n.Path)}
			list = append(list, u)
			open = append(open[:level], u)
		}
		for _, u := range open {
			u.Znodes++
			u.Bytes += int64(n.Stat.DataLength)
			if n.Ephemeral() {
				u.Ephemerals++
			}
		}
	}
	for _, u := range list {
		if err := c.Emit(u, func(w io.Writer) {
			fmt.Fprintf(w, "%8d %-6s %10s  %s\n", u.Znodes, numbered(u.Znodes, "znode"), byteCount(u.Bytes), u.Path)
		}); err != nil {
			return err
		}
	}
	return nil
}
