package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/terminal"
)

// Call is one invocation of a command.
type Call struct {
	// Args are the arguments without the command's name and options.
	Args []string
	// In is the input for data that the command asks for.
	In io.Reader
	// Out receives the data, Err all other output.
	Out, Err io.Writer
	// Term describes the terminal behind Out.
	Term terminal.Term

	command *Command
	options map[string][]string
	literal int // index of the first argument after "--"
	shell   *Shell
	title   string                  // printed before the next output: the path, if there are several
	titled  bool                    // a title was printed
	giveUp  context.CancelCauseFunc // cancels a tool's context
}

// Has reports whether an option was given.
func (c *Call) Has(option string) bool { return len(c.options[option]) > 0 }

// Value returns the argument of an option, the first one if the option was given
// several times, or "" if it wasn't given.
func (c *Call) Value(option string) string {
	if v := c.options[option]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Values returns the arguments of an option that may be repeated.
func (c *Call) Values(option string) []string { return c.options[option] }

// Client returns the connection, or an error if there is none.
func (c *Call) Client() (*client.Client, error) { return c.shell.client() }

// JSON reports whether data should be written as JSON.
func (c *Call) JSON() bool { return c.shell.cfg.JSON }

// Emit writes data: in JSON mode v as one line of JSON, otherwise the output of text.
// It returns the writer's error.
func (c *Call) Emit(v any, text func(w io.Writer)) error {
	if !c.JSON() {
		if c.title != "" {
			if c.titled {
				fmt.Fprintln(c.Out)
			}
			fmt.Fprintln(c.Out, c.title+":")
			c.title, c.titled = "", true
		}
		text(c.Out)
		return nil
	}
	encoder := json.NewEncoder(c.Out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// UsageError returns an error for wrong arguments, with the usage as its message.
func (c *Call) UsageError() error { return misuse("%s", c.command.usage()) }

// tooMany returns an error for a superfluous argument.
func (c *Call) tooMany(arg string) error {
	return misuse("%s: unexpected argument %q; a name or a value with spaces needs quotes\n%s", c.command.Name, arg, strings.TrimSpace(c.command.Name+" "+c.command.Usage))
}

// each calls do for every argument, and for without if there are no arguments. It
// continues after an error, and fails if any call failed.
func (c *Call) each(ctx context.Context, without string, do func(ctx context.Context, arg string) error) error {
	args := c.Args
	if len(args) == 0 {
		args = []string{without}
	}
	if len(args) == 1 {
		return do(ctx, args[0])
	}
	var failed error
	for _, arg := range args {
		err := do(ctx, arg)
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			fmt.Fprintf(c.Err, "%s %s: %s\n", c.command.Name, arg, sentence(toolError(ctx, err)))
			failed = err
		}
	}
	if failed != nil {
		return &Exit{Code: codeFailed, Err: failed} // already reported
	}
	return nil
}

// eachPath calls do for every argument of a command that accepts only one path in zkCli.sh. It
// continues after an error, and fails if any call failed. With several paths, the output of each
// has a title.
func (c *Call) eachPath(ctx context.Context, do func(ctx context.Context, path string) error) error {
	if len(c.Args) == 1 {
		return do(ctx, c.Args[0])
	}
	for _, arg := range c.Args[1:] {
		if !strings.HasPrefix(arg, "/") {
			return c.tooMany(arg)
		}
	}
	var failed error
	for _, path := range c.Args {
		c.title = path
		err := do(ctx, path)
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			if text := sentence(err); text != "" {
				fmt.Fprintln(c.Err, text)
			}
			failed = err
		}
	}
	if failed != nil {
		return &Exit{Code: codeFailed, Err: failed} // already reported
	}
	return nil
}

// Exit is an error with its own message and exit code.
type Exit struct {
	// Code is the exit code of the process if this was its last command.
	Code int
	// Message is printed unchanged; "" prints nothing.
	Message string
	// Err is the cause, or nil.
	Err error
}

// Error returns the message.
func (e *Exit) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Exit) Unwrap() error { return e.Err }

// Exit codes of commands: codeFailed if the command failed, codeUsage if the command
// line is invalid.
const (
	codeFailed = 1
	codeUsage  = 2
)

// refuse returns the error of a command that failed.
func refuse(message string) error { return &Exit{Code: codeFailed, Message: message} }

// misuse returns the error for an invalid command line.
func misuse(format string, args ...any) error {
	return &Exit{Code: codeUsage, Message: fmt.Sprintf(format, args...)}
}
