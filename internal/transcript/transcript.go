// Package transcript runs readable tests: a text file of commands, each followed by its output. It
// imports the standard library only.
//
// A line that begins with "> " is a command of words separated by spaces. The lines after
// it are its output. Empty lines and lines that begin with "#" structure the file.
package transcript

import (
	"fmt"
	"os"
	"strings"
)

// Run runs the commands of a file in order and returns an error unless what do returns for
// each is the output in the file. do returns lines without empty ones. With rewrite, Run
// writes the output into the file instead.
func Run(file string, rewrite bool, do func(command string, args []string) string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	got, commands := replay(string(text), do)
	switch {
	case commands == 0:
		return fmt.Errorf("%s has no commands", file)
	case got == string(text):
		return nil
	case rewrite:
		return os.WriteFile(file, []byte(got), 0o644)
	}
	return fmt.Errorf("%s: %s\nif the change is intended, run the test with -rewrite and read what changed", file, difference(string(text), got))
}

// replay returns the text with the output that the commands have now, and the number of
// commands.
func replay(text string, do func(command string, args []string) string) (string, int) {
	var b strings.Builder
	commands := 0
	for line := range strings.Lines(text) {
		command, is := strings.CutPrefix(strings.TrimRight(line, "\n"), "> ")
		switch {
		case is:
			commands++
			b.WriteString("> " + command + "\n")
			if f := strings.Fields(command); len(f) > 0 {
				if out := strings.TrimRight(do(f[0], f[1:]), "\n"); out != "" {
					b.WriteString(out + "\n")
				}
			}
		case line == "\n", strings.HasPrefix(line, "#"):
			b.WriteString(line)
		}
	}
	return b.String(), commands
}

// difference describes the first command with a different output.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n> "), strings.Split(got, "\n> ")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return "\nwant\n> " + w[i] + "\ngot\n> " + g[i]
		}
	}
	return "it is incomplete"
}
