package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/zkgo/zkgo/internal/cli/subtree"
)

// applyOptions returns the options of all commands that write a subtree.
func applyOptions(more ...Option) []Option {
	return append(more,
		Option{Name: "merge", Help: "only create missing znodes, do not change existing ones", Group: "mode"},
		Option{Name: "overwrite", Help: "also overwrite data and ACLs that differ", Group: "mode"},
		Option{Name: "prune", Help: "with -overwrite, also delete znodes that the source does not have"},
		Option{Name: "parents", Help: "create missing parents of the target"},
		Option{Name: "dry-run", Help: "show what would be done without doing it"},
		Option{Name: "q", Long: "quiet", Help: "show no progress"},
		Option{Name: "v", Long: "verbose", Help: "show every znode"},
	)
}

// copyOnlyOptions returns the options that would lose information in a move.
func copyOnlyOptions() []Option {
	return []Option{
		{Name: "noacl", Help: "do not copy ACLs; new znodes get world:anyone:cdrwa"},
		{Name: "ephemerals", Help: "copy ephemeral znodes, as persistent ones (default: skip them)"},
	}
}

func copyCommand() Command {
	return Command{
		Name:        "cp",
		Verb:        "cp from to",
		Usage:       "[-merge | -overwrite [-prune]] [-dry-run] [...] from to",
		Short:       "copy a subtree, also between ensembles (host:port/path)",
		ListOptions: true,
		Options:     applyOptions(append(copyOnlyOptions(), Option{Name: "r", Long: "recursive", Help: "no effect: cp always copies the whole subtree"})...),
		Least:       2,
		Most:        2,
		Run:         runCopy,
	}
}

// applyConfig converts the options of applyOptions.
func (c *Call) applyConfig(progress *progress) subtree.ApplyOptions {
	o := subtree.ApplyOptions{
		Prune: c.Has("prune"), DryRun: c.Has("dry-run"), Parents: c.Has("parents"),
		NoACL: c.Has("noacl"), KeepEphemerals: c.Has("ephemerals"),
		Did: func(a subtree.Action) {
			progress.step(1)
			if c.Has("dry-run") || c.Has("v") {
				c.showAction(a)
			}
		},
	}
	switch {
	case c.Has("merge"):
		o.Mode = subtree.Merge
	case c.Has("overwrite"):
		o.Mode = subtree.Overwrite
	}
	return o
}

// showAction prints an action that was done, or would be done in a dry run.
func (c *Call) showAction(a subtree.Action) {
	c.Emit(a, func(w io.Writer) { //nolint:errcheck // a closed terminal ends the command elsewhere
		fmt.Fprintf(w, "%-7s %s", a.Kind, a.Path)
		if a.Why != "" {
			fmt.Fprintf(w, "  (%s)", a.Why)
		}
		fmt.Fprintln(w)
	})
}

func runCopy(ctx context.Context, c *Call) error {
	from, to, done, err := c.places(ctx)
	if err != nil {
		return err
	}
	defer done()
	if c.Has("prune") && !c.Has("overwrite") {
		return misuse("-prune requires -overwrite")
	}
	bar := c.progress("copying", total(ctx, from))
	report, err := subtree.Copy(ctx, from, to, c.applyConfig(bar))
	bar.end()
	return c.report(report, to.Root, err)
}

// report prints the changes so far, even if the command failed.
func (c *Call) report(r subtree.Report, target string, failed error) error {
	if failed != nil && !r.Changed() {
		return failed
	}
	verb := "done"
	switch {
	case failed != nil:
		verb = "done before it failed"
	case c.Has("dry-run"):
		verb = "to be done"
	}
	err := c.Emit(map[string]any{"target": target, "dryRun": c.Has("dry-run"), "complete": failed == nil, "report": r}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %d created, %d written, %d ACLs set, %d deleted; %d unchanged, %d kept, %d left out; %s written\n",
			verb, r.Created, r.Set, r.ACLs, r.Deleted, r.Unchanged, r.Kept, r.Skipped, byteCount(r.Bytes))
	})
	for _, s := range r.Sequences {
		fmt.Fprintf(c.Err, "note: the next sequential znode in %s gets the number %d, but %d already exists: creating sequential znodes fails until the counter is higher\n",
			s.Path, s.Next, s.Highest)
	}
	if failed != nil {
		return failed
	}
	return err
}

func moveCommand() Command {
	return Command{
		Name:        "mv",
		Verb:        "mv from to",
		Usage:       "[-overwrite [-prune]] [-dry-run] [...] from to",
		Short:       "move a subtree, also between ensembles: copy, compare, delete",
		ListOptions: true,
		Options:     moveOptions(),
		Least:       2,
		Most:        2,
		Run:         runMove,
	}
}

// moveOptions returns those options of cp that make a complete copy.
func moveOptions() []Option {
	var list []Option
	for _, o := range applyOptions() {
		if o.Name != "merge" {
			list = append(list, o)
		}
	}
	return list
}

func runMove(ctx context.Context, c *Call) error {
	from, to, done, err := c.places(ctx)
	if err != nil {
		return err
	}
	defer done()
	n := total(ctx, from)
	bar := c.progress("copying", n)
	o := subtree.MoveOptions{
		Apply: c.applyConfig(bar),
		Stage: func(s subtree.Stage) {
			switch s {
			case subtree.StageVerify:
				bar.end()
				bar = c.progress("comparing", -1)
			case subtree.StageDelete:
				bar.end()
				bar = c.progress("deleting", n)
			}
		},
		Deleted: func(path string) {
			bar.step(1)
			if c.Has("v") {
				c.showAction(subtree.Action{Kind: subtree.ActionDelete, Path: path})
			}
		},
	}
	report, moved, err := subtree.Move(ctx, from, to, o)
	bar.end()
	if err == nil && !o.Apply.DryRun {
		fmt.Fprintf(c.Err, "%s deleted at the source\n", plural(moved, "znode"))
	}
	return c.report(report, to.Root, err)
}

func removeCommand() Command {
	return Command{
		Name:        "rm",
		Verb:        "rm path...",
		Usage:       "[-r [-below]] [-dry-run] [-q] [-v] path...",
		Short:       "delete znodes, with -r including their descendants",
		ListOptions: true,
		Options: []Option{
			{Name: "r", Long: "recursive", Help: "also delete all descendants"},
			{Name: "below", Help: "delete only the descendants, not the znode itself"},
			{Name: "dry-run", Help: "show what would be deleted without deleting it"},
			{Name: "q", Long: "quiet", Help: "show no progress"},
			{Name: "v", Long: "verbose", Help: "show every znode"},
		},
		Least: 1,
		Most:  Any,
		Run:   runRemove,
	}
}

func runRemove(ctx context.Context, c *Call) error { return c.each(ctx, "", c.remove) }

// remove deletes the subtree at one place.
func (c *Call) remove(ctx context.Context, arg string) error {
	p, done, err := c.place(ctx, arg)
	if err != nil {
		return err
	}
	defer done()
	var bar *progress
	o := subtree.RemoveOptions{
		KeepRoot: c.Has("below"), DryRun: c.Has("dry-run"),
		Found: func(n int) error {
			if n > 1 && !c.Has("r") {
				return fmt.Errorf("%s: has %s below it; use -r to delete them, too", p.Root, plural(n-1, "znode"))
			}
			bar = c.progress("deleting", n)
			return nil
		},
		Did: func(a subtree.Action) {
			bar.step(1)
			if c.Has("dry-run") || c.Has("v") {
				c.showAction(a)
			}
		},
	}
	n, err := subtree.Remove(ctx, p.Client, p.Root, o)
	bar.end()
	if err != nil && n == 0 {
		return err
	}
	verb := "deleted"
	if o.DryRun {
		verb = "would be deleted"
	}
	if werr := c.Emit(map[string]any{"path": p.Root, "dryRun": o.DryRun, "complete": err == nil, "deleted": n}, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s\n", plural(n, "znode"), verb)
	}); err == nil {
		err = werr
	}
	return err
}
