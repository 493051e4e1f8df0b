package cli

import (
	"context"
	"slices"
	"strings"
)

// Command is one command of the shell. It is a value and never changes.
type Command struct {
	// Name is what is typed.
	Name string
	// Usage is what follows the name in the help, as "[-s] [-w] path".
	Usage string
	// Short says in a few words what it does, for lists and completion.
	Short string
	// More is what else its help says, in lines of the width that it is printed with;
	// "" is nothing.
	More string
	// Options are what it takes with a hyphen.
	Options []Option
	// ListOptions prints the options below the usage, as zkCli.sh does for some.
	ListOptions bool
	// Least is how many arguments have to be there. With fewer the usage is the
	// error.
	Least int
	// Most is how many arguments there may be, [Any] for any number. With more the
	// first of those that are too many is named in the error.
	Most int
	// Required names a group of options of which one has to be given.
	Required string
	// Offline says that it needs no session.
	Offline bool
	// Run does it. Its error is told by the shell; see [Exit] for another exit code
	// than 1.
	Run func(ctx context.Context, c *Call) error
}

// Any is how many arguments a command has that takes any number.
const Any = -1

// Option is an option of a command.
type Option struct {
	// Name without the hyphen; of several letters, as in reconfig -members, if need
	// be.
	Name string
	// Arg names its argument; "" if it takes none.
	Arg string
	// Help says what it does.
	Help string
	// Group names a group of which one option at most may be given.
	Group string
}

// usage is the whole usage: what a command is refused with that has too few
// arguments.
func (c *Command) usage() string {
	text := c.Name + " " + c.Usage
	if !c.ListOptions {
		return text
	}
	sorted := slices.Clone(c.Options)
	slices.SortStableFunc(sorted, func(a, b Option) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	width := 0
	left := make([]string, len(sorted))
	for i, o := range sorted {
		left[i] = " -" + o.Name
		if o.Arg != "" {
			left[i] += " <arg>"
		}
		width = max(width, len(left[i]))
	}
	var b strings.Builder
	b.WriteString(text)
	for i, o := range sorted {
		b.WriteString("\n" + left[i] + strings.Repeat(" ", width-len(left[i])+3) + o.Help)
	}
	return b.String()
}

// help is the whole help: usage, options and what it does.
func (c Command) help() string {
	c.ListOptions = len(c.Options) > 0
	text := c.usage() + "\n" + c.Short + "\n"
	if c.More != "" {
		text += "\n" + c.More + "\n"
	}
	return text
}

// Commands returns all commands, sorted by name.
func Commands() []Command {
	all := slices.Concat(shellCommands(), readCommands(), writeCommands(), aclCommands(), quotaCommands(),
		watchCommands(), ensembleCommands(), toolCommands())
	slices.SortFunc(all, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Find returns the command with a name.
func Find(name string) (Command, bool) {
	all := Commands()
	i, ok := slices.BinarySearchFunc(all, name, func(c Command, name string) int { return strings.Compare(c.Name, name) })
	if !ok {
		return Command{}, false
	}
	return all[i], true
}
