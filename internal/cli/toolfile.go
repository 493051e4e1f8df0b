package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/zkgo/zkgo/internal/cli/subtree"
	"github.com/zkgo/zkgo/internal/cli/terminal"
)

func exportCommand() Command {
	return Command{
		Name:        "export",
		Usage:       "[-f file [-force]] [-format json|yaml] [-stat] [-noacl] path",
		Short:       "export a subtree to a file",
		ListOptions: true,
		Options: []Option{
			{Name: "f", Long: "file", Arg: "file", Help: "output file, ending in .json, .yaml or .yml unless -format is used; default and -: the standard output"},
			{Name: "force", Help: "replace the file if it exists"},
			{Name: "format", Arg: "format", Help: "json or yaml (default for the standard output: json)"},
			{Name: "stat", Help: "also write zxids, times and versions, for information only"},
			{Name: "noacl", Help: "do not export ACLs"},
			{Name: "q", Long: "quiet", Help: "show no progress"},
		},
		Least: 1,
		Most:  1,
		Run:   runExport,
	}
}

func runExport(ctx context.Context, c *Call) error {
	p, done, err := c.place(ctx, c.Args[0])
	if err != nil {
		return err
	}
	defer done()
	format, err := c.format()
	if err != nil {
		return err
	}
	name := c.Value("f")
	if name == "-" {
		name = "" // the output, as - is the input of import
	}
	if err := c.mayWrite(name); err != nil {
		return err
	}
	bar := c.progress("exporting", total(ctx, p))
	ephemerals := 0
	var vanished []string
	o := subtree.ExportOptions{
		Format: format, Root: p.Client.FullPath(p.Root), Stat: c.Has("stat"), NoACL: c.Has("noacl"),
		Wrote: func(n *subtree.Node) {
			bar.step(1)
			if n.Ephemeral() {
				ephemerals++
			}
		},
	}
	src := subtree.Walk(p.Client, p.Root, subtree.WalkOptions{NoACL: o.NoACL, Vanished: func(path string) { vanished = append(vanished, path) }})
	n := 0
	write := func(w io.Writer) (err error) {
		n, err = subtree.Export(ctx, w, src, o)
		return err
	}
	if name == "" {
		err = write(c.Out)
	} else {
		err = writeFile(name, c.Has("force"), write)
	}
	bar.end()
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Err, "%s exported, %d of them ephemeral\n", plural(n, "znode"), ephemerals)
	if len(vanished) > 0 {
		fmt.Fprintf(c.Err, "%s skipped, deleted during the export\n", plural(len(vanished), "znode"))
	}
	return nil
}

// format returns the requested format, or the one that the file name implies.
func (c *Call) format() (subtree.Format, error) {
	name := c.Value("format")
	toFile := c.Has("f") && c.Value("f") != "-"
	if name == "" && toFile {
		name = strings.TrimPrefix(filepath.Ext(c.Value("f")), ".")
	}
	switch name {
	case "json", "":
		if name == "" && toFile {
			break
		}
		return subtree.JSON, nil
	case "yaml", "yml":
		return subtree.YAML, nil
	}
	return "", misuse("format %q of %q: use -format json or yaml, or a file name that ends in .json, .yaml or .yml", name, c.Value("f"))
}

// mayWrite returns an error if the file exists, unless -force was given and the file
// can be replaced.
func (c *Call) mayWrite(name string) error {
	if name == "" {
		return nil
	}
	if _, err := os.Lstat(name); err != nil {
		return nil //nolint:nilerr // the file is missing, or creating it reports the error
	}
	if _, err := Replaceable(name); err != nil {
		return err
	}
	if !c.Has("force") {
		return existsError(name)
	}
	return nil
}

// Replaceable returns the file that a forced write to name may replace or create. A
// symbolic link stays, and the file that it names is replaced. We refuse anything except a
// regular file: e.g. a rename onto /dev/null would remove that device for all processes.
func Replaceable(name string) (string, error) {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return name, nil
	}
	file := name
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if file, err = filepath.EvalSymlinks(name); err == nil {
			info, err = os.Lstat(file)
		}
	}
	if err != nil {
		return "", refuse(name + " exists, and its target can't be replaced: " + err.Error())
	}
	if !info.Mode().IsRegular() {
		return "", refuse(name + " is " + terminal.KindOf(info.Mode()) + " and not a regular file, so it can't be replaced: name another file, or - for the standard output")
	}
	return file, nil
}

func existsError(name string) error {
	return refuse(name + " already exists: use another file name, or replace it with -force")
}

// writeFile writes a file completely or not at all. Without force it replaces no file, and with
// force only a regular file.
func writeFile(name string, force bool, write func(io.Writer) error) error {
	if force {
		file, err := Replaceable(name)
		if err != nil {
			return err
		}
		name = file
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = giveName(f.Name(), name, force)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// giveName renames a temporary file. Without force we use a link, because that fails if the
// name exists, even if the file was created just now.
func giveName(temp, name string, force bool) error {
	if force {
		return os.Rename(temp, name)
	}
	err := os.Link(temp, name)
	switch {
	case err == nil:
		return os.Remove(temp)
	case errors.Is(err, os.ErrExist):
		return existsError(name)
	}
	if _, err := os.Lstat(name); err == nil { // a file system without links
		return existsError(name)
	}
	return os.Rename(temp, name)
}

func importCommand() Command {
	return Command{
		Name:        "import",
		Usage:       "[-merge | -overwrite [-prune]] [-dry-run] [...] file [path]",
		Short:       "import an exported subtree to a path (default: its original path); file - is the standard input",
		ListOptions: true,
		Options:     applyOptions(copyOnlyOptions()...),
		Least:       1,
		Most:        2,
		Run:         runImport,
	}
}

func runImport(ctx context.Context, c *Call) error {
	doc, closeFile, err := c.document(c.Args[0])
	if err != nil {
		return err
	}
	defer closeFile()
	target := doc.Root
	if len(c.Args) > 1 {
		target = c.Args[1]
	}
	if target == "" {
		return misuse("%s does not contain its original path: add a path after it", c.Args[0])
	}
	p, done, err := c.place(ctx, target)
	if err != nil {
		return err
	}
	defer done()
	bar := c.progress("importing", doc.Count)
	report, err := subtree.Apply(ctx, p.Client, p.Root, doc.Source(), c.applyConfig(bar))
	bar.end()
	return c.report(report, p.Root, err)
}

// document reads a file; "-" means the standard input. We validate a document completely
// before we use it. If we can read the input only once, we copy it to a temporary file.
func (c *Call) document(name string) (*subtree.Document, func(), error) {
	f, done, err := c.rereadable(name)
	if err != nil {
		return nil, nil, err
	}
	doc, err := subtree.Read(f)
	if err != nil {
		done()
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return doc, done, nil
}

// rereadable opens a file, or a copy of the standard input or of a FIFO. The caller must
// call done.
func (c *Call) rereadable(name string) (f *os.File, done func(), err error) {
	if name == "-" {
		in, err := c.input()
		if err != nil {
			return nil, nil, misuse("%s: %v", c.command.Name, err)
		}
		return spool("the input", in)
	}
	if f, err = os.Open(name); err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	switch {
	case err == nil && info.Mode().IsRegular():
		return f, func() { f.Close() }, nil
	case err == nil && info.Mode()&fs.ModeNamedPipe != 0: // e.g. of a shell's <(command)
		defer f.Close()
		return spool(name, f)
	case err == nil:
		err = refuse(name + " is " + terminal.KindOf(info.Mode()) + " and not a file")
	}
	f.Close()
	return nil, nil, err
}

// spool copies the input to a temporary file, which done removes.
func spool(name string, in io.Reader) (f *os.File, done func(), err error) {
	if f, err = os.CreateTemp("", "zkgo-import-*"); err != nil {
		return nil, nil, err
	}
	done = func() {
		f.Close()
		os.Remove(f.Name()) //nolint:errcheck // a temporary file
	}
	if _, err = io.Copy(f, in); err != nil {
		done()
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, done, nil
}
