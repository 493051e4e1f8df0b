package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/reeflective/readline"
	"github.com/reeflective/readline/inputrc"
)

// Prompt says how lines are read from somebody at a terminal.
type Prompt struct {
	// History is the file that lines are kept in, readable by its owner only; ""
	// keeps them nowhere.
	History string
	// Interruptible returns a context that also ends when the interrupt key is
	// pressed while a command runs.
	Interruptible func(context.Context) (context.Context, context.CancelFunc)
}

// completionTime is how long a server may take to list what a path can be completed
// with.
const completionTime = 2 * time.Second

// Interactive reads lines from the terminal on the process's standard input until
// quit or the end of input. The exit code is that of the last command.
func (s *Shell) Interactive(ctx context.Context, p Prompt) (code int, err error) {
	editor := readline.NewShell(inputrc.WithApp("zkgo"))
	editor.Prompt.Primary(s.prompt)
	editor.Completer = func(line []rune, cursor int) readline.Completions { return s.complete(ctx, string(line[:cursor])) }
	if p.History != "" {
		lines, err := openHistory(p.History)
		if err != nil {
			fmt.Fprintf(s.cfg.Err, "no history is kept: %v\n", err)
		} else {
			editor.History.Delete()
			editor.History.Add("history", lines)
		}
	}
	fmt.Fprintln(s.cfg.Out, "Welcome to ZooKeeper!")
	for {
		above := func(text string) { _, _ = editor.PrintTransientf("%s", strings.TrimSuffix(text, "\n")) }
		s.above.Store(&above)
		line, err := editor.Readline()
		s.above.Store(nil)
		switch {
		case errors.Is(err, readline.ErrInterrupt):
			continue
		case errors.Is(err, io.EOF):
			return code, nil
		case err != nil:
			return 1, fmt.Errorf("reading from the terminal: %w", err)
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		running, stop := p.Interruptible(ctx)
		var quit bool
		code, quit = s.Line(running, line)
		stop()
		if quit {
			return code, nil
		}
	}
}

// prompt is zkCli.sh's prompt: servers, state, and the number of the command.
func (s *Shell) prompt() string {
	return s.cfg.Term.Paint(Bold, fmt.Sprintf("[zk: %s(%s) %d]", s.cfg.Server, s.javaState(), len(s.history))) + " "
}

// openHistory opens the file of old lines, and creates it so that nobody else can
// read it.
func openHistory(path string) (readline.History, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	lines, err := readline.NewHistoryFromFile(path)
	if err != nil {
		return nil, err
	}
	return secretive{lines}, nil
}

// secretive is a history that keeps no passwords.
type secretive struct{ readline.History }

// Write keeps a line, unless it proves an identity.
func (h secretive) Write(line string) (int, error) {
	if words := split(line); len(words) > 0 && words[0] == "addauth" {
		return h.Len(), nil
	}
	return h.History.Write(line)
}
