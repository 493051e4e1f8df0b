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
		Usage:       "[-depth n] [-data] [-l] [-a] [path...]",
		Short:       "show subtrees",
		ListOptions: true,
		Options: []Option{
			{Name: "depth", Arg: "n", Help: "levels below the path"},
			{Name: "data", Help: "show the data, as far as they fit into a line"},
			{Name: "l", Help: "show size, version and time of the last write"},
			{Name: "a", Help: "show ZooKeeper's own znodes too"},
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
