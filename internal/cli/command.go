package cli

import (
	"context"
	"slices"
	"strings"
)

// Command is one command of the shell. It is an immutable value.
type Command struct {
	// Name is the name that users type.
	Name string
	// Usage is the text after the name in the help, e.g. "[-s] [-w] path".
	Usage string
	// Verb is the form of the command outside the shell, without options, e.g.
	// "get path...". "" means that it makes no sense there.
	Verb string
	// Short is a short description for lists and completion.
	Short string
	// More is the rest of the help, in lines of the printed width; "" means nothing.
	More string
	// Options are the command's options, i.e. arguments with a hyphen.
	Options []Option
	// ListOptions prints the options below the usage, as zkCli.sh does for some.
	ListOptions bool
	// Least is the minimum number of arguments. With fewer, the error is the usage.
	Least int
	// Most is the maximum number of arguments, or [Any]. With more, the error names
	// the first superfluous one.
	Most int
	// Required names a group of options. The user must give exactly one option of the group.
	Required string
	// Offline means that the command needs no session.
	Offline bool
	// Run runs the command. The shell reports its error; see [Exit] for an exit code
	// other than 1.
	Run func(ctx context.Context, c *Call) error
}

// Any is the value of Most for any number of arguments.
const Any = -1

// Option is an option of a command.
type Option struct {
	// Name is the name without the hyphen. It may have several letters, as in
	// reconfig -members.
	Name string
	// Long is a second name, for options of one letter: outside the shell -s and -o have
	// other meanings.
	Long string
	// Arg names the option's argument; "" if it has none.
	Arg string
	// Help describes the option.
	Help string
	// Group names a group of mutually exclusive options.
	Group string
}

// usage returns the complete usage, which is also the error for too few arguments.
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

// help returns the complete help: usage, description and options.
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

// Find returns the command with the given name.
func Find(name string) (Command, bool) {
	all := Commands()
	i, ok := slices.BinarySearchFunc(all, name, func(c Command, name string) int { return strings.Compare(c.Name, name) })
	if !ok {
		return Command{}, false
	}
	return all[i], true
}
