package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/zkgo/zkgo/internal/cli/subtree"
)

func duCommand() Command {
	return Command{
		Name:        "du",
		Usage:       "[-depth n] [path...]",
		Short:       "show how many znodes and bytes each subtree holds",
		ListOptions: true,
		Options:     []Option{{Name: "depth", Arg: "n", Help: "levels below the path that are shown, 1 without it"}},
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
