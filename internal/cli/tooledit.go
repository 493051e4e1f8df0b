package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"unicode"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/terminal"
	"github.com/zkgo/zkgo/proto"
)

func editCommand() Command {
	return Command{
		Name:        "edit",
		Verb:        "edit path",
		Usage:       "[-editor command] [-create] path",
		Short:       "edit the data of a znode in $VISUAL or $EDITOR; fails if another client changes it first",
		ListOptions: true,
		Options: []Option{
			{Name: "editor", Arg: "command", Help: "another editor"},
			{Name: "create", Help: "create the znode if it does not exist"},
		},
		Least: 1,
		Most:  1,
		Run:   runEdit,
	}
}

// edit is one znode being edited.
type edit struct {
	zk    *client.Client
	path  string
	file  string
	data  []byte
	stat  client.Stat
	fresh bool // the znode must be created
}

func runEdit(ctx context.Context, c *Call) error {
	p, done, err := c.place(ctx, c.Args[0])
	if err != nil {
		return err
	}
	defer done()
	e := &edit{zk: p.Client, path: p.Root}
	if err := e.read(ctx, c.Has("create")); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "zkgo-edit-")
	if err != nil {
		return err
	}
	e.file = filepath.Join(dir, fileName(e.path))
	written, err := e.edit(ctx, c)
	if err != nil {
		now, rerr := terminal.ReadRegular(e.file, maxValue)
		if !errors.Is(rerr, fs.ErrNotExist) && (rerr != nil || !bytes.Equal(now, e.data)) {
			return fmt.Errorf("%w\nyour text is in %s", err, e.file)
		}
		os.RemoveAll(dir) //nolint:errcheck // a temporary directory
		return err
	}
	os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	return c.Emit(map[string]any{"path": e.path, "written": written, "version": e.stat.Version}, func(w io.Writer) {
		if written {
			fmt.Fprintf(w, "%s written, version %d\n", e.path, e.stat.Version)
			return
		}
		fmt.Fprintf(w, "%s is unchanged\n", e.path)
	})
}

// fileName converts a znode's name to a file name. We keep the extension, because it tells
// the editor the language.
func fileName(path string) string {
	name := strings.Map(func(r rune) rune {
		if r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("-_.", r) {
			return r
		}
		return '_'
	}, proto.Base(path))
	return cmp.Or(name, "root")
}

func (e *edit) read(ctx context.Context, create bool) (err error) {
	e.data, e.stat, err = e.zk.Get(ctx, e.path)
	if create && errors.Is(err, client.ErrNoNode) {
		e.fresh, err = true, nil
	}
	return err
}

// edit runs the editor on the data and writes the result. After an error we keep the file.
func (e *edit) edit(ctx context.Context, c *Call) (written bool, err error) {
	if err := os.WriteFile(e.file, e.data, 0o600); err != nil {
		return false, err
	}
	if err := runEditor(c, e.file); err != nil {
		return false, err
	}
	now, err := terminal.ReadRegular(e.file, maxValue)
	if err != nil {
		return false, err
	}
	// Many editors add a newline at the end of a file, so we remove it if the data had
	// none.
	if !bytes.HasSuffix(e.data, []byte("\n")) && bytes.HasSuffix(now, []byte("\n")) {
		now = bytes.TrimSuffix(bytes.TrimSuffix(now, []byte("\n")), []byte("\r"))
	}
	if bytes.Equal(now, e.data) && !e.fresh {
		return false, nil
	}
	return true, e.write(ctx, now)
}

func (e *edit) write(ctx context.Context, now []byte) (err error) {
	var st client.Stat
	if e.fresh {
		_, st, err = e.zk.CreateStat(ctx, e.path, now)
	} else if err = e.same(ctx); err == nil {
		st, err = e.zk.Set(ctx, e.path, now, e.stat.Version)
	}
	if errors.Is(err, client.ErrUnknownOutcome) && ctx.Err() == nil {
		// The connection broke, so we check the znode itself.
		if data, is, rerr := e.zk.Get(ctx, e.path, client.Linearizable); rerr == nil && bytes.Equal(data, now) {
			st, err = is, nil
		}
	}
	switch {
	case err == nil:
		e.stat = st
		return nil
	case errors.Is(err, client.ErrBadVersion):
		return fmt.Errorf("%s was changed by another client while you edited version %d: nothing was written: %w", e.path, e.stat.Version, err)
	case errors.Is(err, client.ErrNodeExists):
		return fmt.Errorf("%s was created by another client while you edited: nothing was written: %w", e.path, err)
	case errors.Is(err, client.ErrNoNode):
		return fmt.Errorf("%s was deleted while you edited: nothing was written: %w", e.path, err)
	}
	return err
}

// same returns an error if the znode was deleted and created again since it was read: the
// versions of a new znode begin at 0 again, so we can't rely on Set.
func (e *edit) same(ctx context.Context) error {
	now, found, err := e.zk.Exists(ctx, e.path, client.Linearizable)
	switch {
	case err != nil:
		return err
	case found && now.Czxid != e.stat.Czxid:
		return fmt.Errorf("%s was deleted and created again by another client while you edited it: nothing was written", e.path)
	}
	return nil // if it is gone, Set will report it
}

// runEditor runs the editor until it exits.
func runEditor(c *Call, file string) error {
	command := c.Value("editor")
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if command == "" {
			command = os.Getenv(name)
		}
	}
	if command == "" && !isTerminal(c.Err) {
		return misuse("edit: vi needs a terminal: use -editor, $VISUAL or $EDITOR to name an editor that does not")
	}
	if command == "" {
		command = "vi"
		if runtime.GOOS == "windows" {
			command = "notepad"
		}
	}
	words := strings.Fields(command)
	if len(words) == 0 {
		return errors.New("the editor's name is empty")
	}
	// We don't kill the editor when ctx ends: only the user should close it.
	cmd := exec.Command(words[0], append(words[1:], file)...) //nolint:gosec // the user's own editor
	cmd.Stdout, cmd.Stderr = under(c.Out), under(c.Err)       // the terminal itself
	if f, ok := c.In.(*os.File); ok {
		cmd.Stdin = f // with any other reader, exec would consume more input than the editor
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("editor %s: %w", words[0], err)
	}
	return nil
}
