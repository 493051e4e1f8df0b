package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxValue is the maximum size of one value. Servers accept less, see jute.maxbuffer.
const maxValue = 64 << 20

// valueHelp is the help text about the sources of data.
const valueHelp = `DATA is the text itself, - for what comes in on the standard input, or @FILE for the
bytes of a file. @@x is the text @x, and after -- everything is text: "set /x -- -".
Input and files are taken byte for byte, with a line's end that they have.`

// errInput is the error for "-" if commands are read from the standard input.
var errInput = errors.New("- reads the standard input, from which the commands themselves come here: use @FILE, or give the command as arguments of zkgo cli")

// value returns the bytes that argument i refers to.
func (c *Call) value(i int) ([]byte, error) {
	text := c.Args[i]
	switch {
	case i >= c.literal:
	case text == "-":
		in, err := c.input()
		if err != nil {
			return nil, misuse("%s: %v", c.command.Name, err)
		}
		return readValue("the standard input", in)
	case strings.HasPrefix(text, "@@"):
		text = text[1:]
	case strings.HasPrefix(text, "@"):
		f, err := os.Open(text[1:])
		if err != nil {
			return nil, misuse("%s: %v (for a value that begins with @ write @%s)", c.command.Name, err, text)
		}
		defer f.Close()
		return readValue(text[1:], f)
	}
	return append([]byte{}, text...), nil
}

// secret returns a value without its line ending if it came from a file or from the
// input.
func (c *Call) secret(i int) ([]byte, error) {
	data, err := c.value(i)
	if err == nil && i < c.literal && (c.Args[i] == "-" || strings.HasPrefix(c.Args[i], "@")) {
		data = bytes.TrimRight(data, "\r\n")
	}
	return data, err
}

// input returns the standard input, unless commands are read from it.
func (c *Call) input() (io.Reader, error) {
	if c.shell.reading || c.In == nil {
		return nil, errInput
	}
	return c.In, nil
}

// readValue reads to the end. It fails if the value is too large for any server.
func readValue(name string, r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxValue+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if len(data) > maxValue {
		return nil, refuse(fmt.Sprintf("%s has more than %d bytes: a znode takes 1 MiB, or what jute.maxbuffer of the servers says", name, maxValue))
	}
	return data, nil
}
