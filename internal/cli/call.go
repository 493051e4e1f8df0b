package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/zkgo/zkgo/client"
)

// Call is one use of a command.
type Call struct {
	// Args are the arguments without the command's name and its options.
	Args []string
	// In is where what is asked for is read from.
	In io.Reader
	// Out takes the data, Err everything else.
	Out, Err io.Writer
	// Term is what Out is.
	Term Term

	command *Command
	options map[string][]string
	literal int // arguments from here on stand after "--"
	shell   *Shell
	giveUp  context.CancelCauseFunc // ends a tool's context
}

// Has reports whether an option was given.
func (c *Call) Has(option string) bool { return len(c.options[option]) > 0 }

// Value returns the argument of an option, the first one if it was given several
// times; "" if it was not given.
func (c *Call) Value(option string) string {
	if v := c.options[option]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Values returns the arguments of an option that may be given several times.
func (c *Call) Values(option string) []string { return c.options[option] }

// Client returns the connection; an error if there is none.
func (c *Call) Client() (*client.Client, error) { return c.shell.client() }

// JSON reports whether data are wanted as JSON.
func (c *Call) JSON() bool { return c.shell.cfg.JSON }

// Emit writes data: v as one line of JSON if that is wanted, otherwise what text
// writes. Its error is that of the writer.
func (c *Call) Emit(v any, text func(w io.Writer)) error {
	if !c.JSON() {
		text(c.Out)
		return nil
	}
	encoder := json.NewEncoder(c.Out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// UsageError refuses the arguments: the usage is the message.
func (c *Call) UsageError() error { return misuse("%s", c.command.usage()) }

// tooMany refuses an argument that the command has no use for.
func (c *Call) tooMany(arg string) error {
	return misuse("%s: unexpected argument %q; a name or a value with spaces needs quotes\n%s", c.command.Name, arg, strings.TrimSpace(c.command.Name+" "+c.command.Usage))
}

// each does something for every argument, also after one that failed, and fails if
// any of them did. With no argument it is done once, for the given one.
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
		return &Exit{Code: codeFailed, Err: failed} // was told
	}
	return nil
}
