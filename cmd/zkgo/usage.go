package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zkgo/zkgo/internal/cli"
	"github.com/zkgo/zkgo/internal/spelling"
)

// Exit codes of the process.
const (
	codeFailed = 1 // the command was understood and failed
	codeUsage  = 2 // the command line is wrong
)

// usageError is an error in the command line.
type usageError struct {
	err  error
	hint string // which command prints help, or "" if the error names it
}

// Error returns the error and the hint.
func (e *usageError) Error() string {
	if e.hint == "" {
		return e.err.Error()
	}
	return e.err.Error() + "\n" + e.hint
}

// Unwrap returns the error without the hint.
func (e *usageError) Unwrap() error { return e.err }

// usagef returns a usageError with a formatted message.
func usagef(format string, args ...any) error { return &usageError{err: fmt.Errorf(format, args...)} }

// misused wraps an error in a usageError that refers to the command's help.
func misused(cmd *cobra.Command, err error) error {
	if u := (*usageError)(nil); errors.As(err, &u) {
		return err
	}
	return &usageError{err: err, hint: "See: " + cmd.CommandPath() + " --help"}
}

// strict makes all commands of the tree reject unknown flags, arguments and
// subcommands with codeUsage.
func strict(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
	if cmd.Run == nil && cmd.RunE == nil {
		group(cmd)
		return
	}
	check := cmd.Args
	if check == nil {
		check = cobra.ArbitraryArgs
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return misused(cmd, argumentsError(cmd, args, err))
		}
		// cobra checks these after the arguments, but its errors can't be recognized,
		// so we check them here first.
		if err := errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()); err != nil {
			return misused(cmd, err)
		}
		return realFiles(cmd)
	}
}

// argumentsError replaces cobra's error about the number of arguments, which only counts
// them, by one that names them. It suggests a subcommand if the first is similar to one.
func argumentsError(cmd *cobra.Command, args []string, err error) error {
	if u := (*usageError)(nil); errors.As(err, &u) {
		return err
	}
	if hint := pathAsServer(cmd); hint != "" {
		return errors.New(hint)
	}
	_, want, _ := strings.Cut(cmd.Use, " ")
	if want == "" {
		want = "no arguments"
	}
	text := fmt.Sprintf("%s expects %s, got none", cmd.CommandPath(), want)
	if len(args) > 0 {
		text = fmt.Sprintf("%s expects %s, got %q", cmd.CommandPath(), want, args)
		if near := spelling.Similar(args[0], subcommands(cmd)); near != "" {
			text += ". Did you mean " + cmd.CommandPath() + " " + near + "?"
		}
	}
	return errors.New(text)
}

// subcommands returns the names of the commands below cmd.
func subcommands(cmd *cobra.Command) []string {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// groupMark is the annotation of a command that only has subcommands.
const groupMark = "group"

// group makes a command with subcommands reject unknown ones.
func group(cmd *cobra.Command) {
	cmd.Annotations = map[string]string{groupMark: "yes"}
	cmd.Args = cobra.ArbitraryArgs // cobra's own check only covers the root
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return misused(cmd, unknownCommand(cmd, args[0]))
	}
}

// unknownCommand returns an error that suggests the most similar command.
func unknownCommand(cmd *cobra.Command, word string) error {
	names := subcommands(cmd)
	text := fmt.Sprintf("unknown command %q for %q", word, cmd.CommandPath())
	_, inShell := cli.Find(word)
	switch near := spelling.Similar(word, names); {
	case !cmd.HasParent() && inShell:
		text += fmt.Sprintf(". It is a shell command: %s cli %s", cmd.CommandPath(), word)
	case near != "":
		text += ". Did you mean this? " + near
	default:
		text += ". Available commands: " + strings.Join(names, ", ")
	}
	return errors.New(text)
}

// unknownWord returns the word after a group of commands in a command line, or "".
func unknownWord(cmd *cobra.Command, args []string) string {
	at := len(strings.Fields(cmd.CommandPath())) - 1
	if cmd.Annotations[groupMark] == "" || len(args) <= at || strings.HasPrefix(args[at], "-") {
		return ""
	}
	for _, sub := range cmd.Commands() {
		if sub.Name() == args[at] {
			return ""
		}
	}
	return args[at]
}

// numberError matches an strconv error as quoted by pflag.
var numberError = regexp.MustCompile(`strconv\.Parse\w+: parsing "[^"]*": (.*)$`)

// flagError adds advice to the error of a flag.
func flagError(cmd *cobra.Command, err error) error {
	text := numberError.ReplaceAllStringFunc(err.Error(), func(s string) string {
		if strings.HasSuffix(s, strconv.ErrRange.Error()) {
			return "the number is out of range"
		}
		return "want a number"
	})
	if strings.Contains(text, ": time: ") {
		text += ": want a duration, e.g. 30s or 2m"
	}
	if name, ok := strings.CutPrefix(text, "unknown flag: --"); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		slices.Sort(names)
		if near := spelling.Similar(name, names); near != "" {
			text += ". Did you mean --" + near + "?"
		}
	}
	return misused(cmd, errors.New(text))
}

// portFlag is the value of a flag: a port.
type portFlag int

// String implements pflag.Value.
func (p *portFlag) String() string { return strconv.Itoa(int(*p)) }

// Type implements pflag.Value.
func (p *portFlag) Type() string { return "port" }

// Set implements pflag.Value.
func (p *portFlag) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return errors.New("want a port from 1 to 65535, or 0 for a free one")
	}
	*p = portFlag(n) //nolint:gosec // 16 bits
	return nil
}

// portVar registers a flag for a port.
func portVar(flags *pflag.FlagSet, p *int, name string, value int, usage string) {
	*p = value
	flags.Var((*portFlag)(p), name, usage)
}
