package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/zkgo/zkgo/internal/cli/terminal"
	"golang.org/x/term"
)

// Prompt provides access to the terminal for reading lines.
type Prompt struct {
	// Raw disables the terminal's own key handling while a line is read, and returns
	// a function that restores it.
	Raw func() (restore func(), err error)
	// Size returns the number of columns and lines.
	Size func() (width, height int)
	// History is the history file, which only its owner can read. "" means no file.
	History string
	// Interruptible returns a context that also ends when the user presses the
	// interrupt key while a command runs.
	Interruptible func(context.Context) (context.Context, context.CancelFunc)
}

// The keys that package term passes to us.
const (
	keyTab    = '\t'
	keySearch = 18 // Ctrl-R
)

// Interactive reads lines from the terminal (the configuration's In and Out) until
// quit or the end of input. Events are printed above the line being edited. It
// returns the exit code of the last command.
func (s *Shell) Interactive(ctx context.Context, p Prompt) (code int, err error) {
	s.reading = true
	lines, err := terminal.OpenHistory(p.History)
	if err != nil {
		fmt.Fprintf(s.cfg.Err, "history disabled: %v\n", err)
	}
	editor := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{&keys{r: s.cfg.In}, s.cfg.Out}, "")
	editor.History = lines
	search := &terminal.Search{Lines: lines}
	editor.AutoCompleteCallback = func(line string, at int, key rune) (string, int, bool) {
		switch key {
		case keyTab:
			return s.complete(ctx, editor, line, at)
		case keySearch:
			return search.Next(line)
		}
		return "", 0, false
	}
	fmt.Fprintln(s.cfg.Out, "Welcome to ZooKeeper!")
	for {
		line, err := s.readLine(editor, p)
		switch {
		case errors.Is(err, io.EOF):
			fmt.Fprintln(s.cfg.Out)
			return code, nil
		case err != nil && !errors.Is(err, term.ErrPasteIndicator):
			return 1, fmt.Errorf("reading from the terminal: %w", err)
		case strings.TrimSpace(line) == "":
			continue
		}
		running, stop := p.Interruptible(ctx)
		var quit bool
		code, quit = s.Line(running, line)
		if running.Err() != nil && code == 0 {
			fmt.Fprintln(s.cfg.Out) // after the ^C that the terminal shows
		}
		stop()
		if quit {
			return code, nil
		}
	}
}

// readLine reads one line and prints events above it.
func (s *Shell) readLine(editor *term.Terminal, p Prompt) (string, error) {
	restore, err := p.Raw()
	if err != nil {
		return "", err
	}
	defer restore()
	if width, height := p.Size(); width > 0 && height > 0 {
		if err := editor.SetSize(width, height); err != nil {
			return "", err
		}
	}
	editor.SetPrompt(s.prompt())
	above := func(text string) {
		editor.SetPrompt(s.prompt()) // the state may have changed
		_, _ = io.WriteString(editor, text)
	}
	s.above.Store(&above)
	defer s.above.Store(nil)
	return editor.ReadLine()
}

// prompt returns zkCli.sh's prompt: servers, state, and the command's number.
func (s *Shell) prompt() string {
	return s.cfg.Term.Paint(terminal.Bold, fmt.Sprintf("[zk: %s(%s) %d]", s.cfg.Server, s.javaState(), len(s.history))) + " "
}

// keys passes on typed keys, but turns the interrupt key into keys that clear the
// line, because package term would treat it as the end of input.
type keys struct {
	r    io.Reader
	rest []byte
}

const (
	keyInterrupt = 3
	toEnd        = 5  // Ctrl-E
	eraseBefore  = 21 // Ctrl-U
)

// Read implements io.Reader.
func (k *keys) Read(b []byte) (int, error) {
	if len(k.rest) == 0 {
		typed := make([]byte, 256)
		n, err := k.r.Read(typed)
		for _, c := range typed[:n] {
			if c == keyInterrupt {
				k.rest = append(k.rest, toEnd, eraseBefore)
			} else {
				k.rest = append(k.rest, c)
			}
		}
		if err != nil && n == 0 {
			return 0, err
		}
	}
	n := copy(b, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}
