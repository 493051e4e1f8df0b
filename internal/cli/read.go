package cli

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/subtree"
	"github.com/zkgo/zkgo/internal/cli/terminal"
)

// readCommands returns the commands that only read znodes.
func readCommands() []Command {
	stat := Option{Name: "s", Long: "stat", Help: "Print znode stats additionally"}
	watch := Option{Name: "w", Long: "watch", Help: "Watch for changes on the znode"}
	return []Command{
		{
			Name: "ls", Usage: "[-s] [-w] [-R] path", Verb: "ls [path...]", Short: "list the children of znodes", Most: Any, Run: list,
			Options: []Option{{Name: "?", Help: "help"}, stat, watch, {Name: "R", Long: "recursive", Help: "list all descendants"}},
		},
		{
			Name: "get", Usage: "[-s] [-w] [-b] [-x] path", Verb: "get path...", Short: "print the data of znodes", Least: 1, Most: Any, Run: get,
			ListOptions: true,
			Options: []Option{
				stat, watch, {Name: "b", Long: "base64", Help: "Output data in base64 format"}, {Name: "x", Long: "hex", Help: "Output data in hexdump format"},
			},
		},
		{
			Name: "stat", Usage: "[-w] path", Verb: "stat path...", Short: "print the metadata of znodes", Least: 1, Most: Any, Run: showStat,
			Options: []Option{watch},
		},
		{Name: "getAllChildrenNumber", Usage: "path", Verb: "getAllChildrenNumber path...", Short: "count the znodes below paths", Least: 1, Most: Any, Run: countChildren},
		{Name: "getEphemerals", Usage: "path", Short: "list the ephemeral znodes of this session", Most: 1, Run: ephemerals},
		{Name: "sync", Usage: "path", Short: "make the server catch up with the leader", Least: 1, Most: 1, Run: syncPath},
	}
}

// oldWatch supports the old form "get path watch", which still sets a watch. zkCli.sh
// accepts any word at the end. We accept only the words that scripts use there,
// because any other word is more likely a part of a path.
func oldWatch(c *Call, now string) {
	if len(c.Args) != 2 || !slices.Contains([]string{"watch", "true", "w", "1"}, strings.ToLower(c.Args[1])) {
		return
	}
	c.options["w"] = []string{""}
	c.Args = slices.Delete(c.Args, 1, 2)
	fmt.Fprintf(c.Err, "'%s path [watch]' has been deprecated. Please use '%s' instead.\n", c.command.Name, now)
}

func list(ctx context.Context, c *Call) error {
	if c.Has("?") {
		fmt.Fprint(c.warnings(), "usage: ls [options] path\n -?   help\n -R   recurse\n -s   stat\n -w   watch\n")
	}
	oldWatch(c, "ls [-w] path")
	if len(c.Args) == 0 {
		return c.UsageError()
	}
	return c.eachPath(ctx, c.list)
}

// list prints the children of one znode.
func (c *Call) list(ctx context.Context, path string) error {
	if c.Has("R") {
		c.title = ""
		return c.shell.walk(ctx, path, c.Has("w"), func(p string) error {
			return c.Emit(map[string]string{"path": p}, func(w io.Writer) { fmt.Fprintln(w, p) })
		})
	}
	names, stat, err := c.shell.children(ctx, path, c.Has("w"))
	if err != nil {
		return err
	}
	slices.Sort(names)
	answer := struct {
		Path     string   `json:"path"`
		Children []string `json:"children"`
		Stat     *Stat    `json:"stat,omitempty"`
	}{Path: path, Children: append([]string{}, names...)}
	if c.Has("s") {
		answer.Stat = NewStat(stat)
	}
	return c.Emit(answer, func(w io.Writer) {
		printNames(w, c.Term, names)
		if c.Has("s") {
			printStat(w, c.Term, stat)
		}
	})
}

// printNames prints a list of names in brackets, or on a terminal in columns if they
// don't fit on one line.
func printNames(w io.Writer, t terminal.Term, names []string) {
	text := "[" + strings.Join(names, ", ") + "]"
	if t.Width == 0 || len(text) <= t.Width {
		painted := make([]string, len(names))
		for i, name := range names {
			painted[i] = t.Paint(terminal.Path, name)
		}
		fmt.Fprintln(w, "["+strings.Join(painted, ", ")+"]")
		return
	}
	printColumns(w, t, names)
}

// printColumns prints names in columns, sorted from top to bottom.
func printColumns(w io.Writer, t terminal.Term, names []string) {
	wide := 0
	for _, name := range names {
		wide = max(wide, len([]rune(name))+2)
	}
	columns := max(1, t.Width/wide)
	rows := (len(names) + columns - 1) / columns
	for row := range rows {
		var b strings.Builder
		for i := row; i < len(names); i += rows {
			b.WriteString(t.Paint(terminal.Path, names[i]))
			if i+rows < len(names) {
				b.WriteString(strings.Repeat(" ", wide-len([]rune(names[i]))))
			}
		}
		fmt.Fprintln(w, b.String())
	}
}

func get(ctx context.Context, c *Call) error {
	oldWatch(c, "get [-s] [-w] path")
	return c.eachPath(ctx, c.get)
}

// get prints the data of one znode.
func (c *Call) get(ctx context.Context, path string) error {
	data, stat, err := c.shell.data(ctx, path, c.Has("w"))
	if err != nil {
		return err
	}
	answer := struct {
		Path string `json:"path"`
		Data
		Stat *Stat `json:"stat,omitempty"`
	}{Path: path, Data: NewData(data)}
	if c.Has("b") && data != nil {
		answer.Data = Data{Base64: base64.StdEncoding.EncodeToString(data)}
	}
	if c.Has("s") {
		answer.Stat = NewStat(stat)
	}
	return c.Emit(answer, func(w io.Writer) {
		shown := data
		if data == nil {
			shown = []byte("null")
		}
		switch {
		case c.Has("x"):
			fmt.Fprintln(w, hexDump(shown))
		case c.Has("b"):
			fmt.Fprintln(w, base64.StdEncoding.EncodeToString(shown))
		case c.Term.Width > 0:
			fmt.Fprintln(w, strings.ToValidUTF8(string(shown), "\uFFFD"))
		default: // write the bytes unchanged to a file
			_, _ = w.Write(append(shown[:len(shown):len(shown)], '\n'))
		}
		if c.Has("s") {
			printStat(w, c.Term, stat)
		}
	})
}

func showStat(ctx context.Context, c *Call) error {
	oldWatch(c, "stat [-w] path")
	return c.eachPath(ctx, c.stat)
}

// stat prints the metadata of one znode.
func (c *Call) stat(ctx context.Context, path string) error {
	stat, found, err := c.shell.exists(ctx, path, c.Has("w"))
	switch {
	case err != nil:
		return err
	case !found:
		return &client.Error{Op: "exists", Path: path, Code: client.ErrNoNode}
	}
	return c.Emit(map[string]any{"path": path, "stat": NewStat(stat)}, func(w io.Writer) { printStat(w, c.Term, stat) })
}

func countChildren(ctx context.Context, c *Call) error {
	return c.eachPath(ctx, func(ctx context.Context, path string) error {
		zk, err := c.Client()
		if err != nil {
			return err
		}
		n, err := zk.ChildrenCount(ctx, path)
		if err != nil {
			return err
		}
		return c.Emit(map[string]any{"path": path, "count": n}, func(w io.Writer) { fmt.Fprintln(w, n) })
	})
}

func ephemerals(ctx context.Context, c *Call) error {
	zk, err := c.Client()
	if err != nil {
		return err
	}
	prefix := "/"
	if len(c.Args) > 0 {
		prefix = c.Args[0]
	}
	if err := checkPath(prefix); err != nil {
		return err
	}
	paths, err := zk.Ephemerals(ctx, prefix)
	if err != nil {
		return err
	}
	slices.Sort(paths)
	return c.Emit(map[string]any{"path": prefix, "ephemerals": append([]string{}, paths...)}, func(w io.Writer) {
		fmt.Fprintln(w, "["+strings.Join(paths, ", ")+"]")
	})
}

func syncPath(ctx context.Context, c *Call) error {
	zk, err := c.Client()
	if err != nil {
		return err
	}
	if err := zk.Sync(ctx, c.Args[0]); err != nil {
		return err
	}
	return c.Emit(map[string]any{"path": c.Args[0], "synced": true}, func(w io.Writer) { fmt.Fprintln(w, "Sync is OK") })
}

// walk calls visit for a znode and its descendants, and sets watches if requested.
func (s *Shell) walk(ctx context.Context, path string, watch bool, visit func(path string) error) error {
	if _, _, err := s.data(ctx, path, watch); err != nil {
		return err
	}
	if err := visit(path); err != nil {
		return err
	}
	return walkBelow(path, visit, func(path string) ([]string, error) {
		names, _, err := s.children(ctx, path, watch)
		return names, err
	})
}

// walkBelow calls visit for all descendants of a znode. It visits all children of a
// znode before their descendants, and skips znodes that other clients delete during the walk.
func walkBelow(path string, visit func(path string) error, children func(path string) ([]string, error)) error {
	names, err := children(path)
	if err != nil {
		return ignoreNoNode(err)
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = subtree.Join(path, "/"+name)
		if err := visit(names[i]); err != nil {
			return err
		}
	}
	for _, child := range names {
		if err := walkBelow(child, visit, children); err != nil {
			return err
		}
	}
	return nil
}
