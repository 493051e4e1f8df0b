package cli

import (
	"context"
	"encoding/json"
	"io"

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
func (c *Call) UsageError() error { return &Exit{Code: 1, Message: c.command.usage()} }
