package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zkgo/zkgo/internal/cli"
)

// verb is a command of the shell that is also a command of zkgo: zkgo get means zkgo cli get. Its
// options have long names, and -s and -o mean the same as for all commands of zkgo.
type verb struct {
	shellFlags
	command cli.Command
	options map[string]string // the option of a flag
}

// verbGroup is the id of the verbs' group in the help.
const verbGroup = "znodes"

// verbCommands returns the commands of the shell that are also commands of zkgo.
func verbCommands() (list []*cobra.Command) {
	for _, command := range cli.Commands() {
		if command.Verb != "" {
			list = append(list, (&verb{command: command, options: map[string]string{}}).cobra())
		}
	}
	return list
}

// verbExamples are examples of verbs, by name.
var verbExamples = map[string]string{
	"get":    "  zkgo get /app/config\n  zkgo get -s zk1:2181,zk2:2181 --stat -o json /app/config",
	"set":    "  zkgo set /app/config '{\"workers\": 4}'\n  zkgo set /app/logo @logo.png\n  generate-config | zkgo set /app/config -",
	"ls":     "  zkgo ls /\n  zkgo ls --recursive /app",
	"create": "  zkgo create --parents /app/config @config.json",
	"rm":     "  zkgo rm /a /b\n  zkgo rm -r /app/old",
	"cp":     "  zkgo cp --dry-run /app zk9:2181/app",
	"diff":   "  zkgo diff /app zk9:2181/app",
	"find":   "  zkgo find --older 720h --leaf /app",
	"watch":  "  zkgo watch --data /app",
	"top":    "  zkgo top -s zk1:2181,zk2:2181,zk3:2181\n  zkgo top --once -o json",
}

// cobra returns the verb's command.
func (v *verb) cobra() *cobra.Command {
	c := v.command
	cmd := &cobra.Command{
		Use:     c.Verb,
		Short:   strings.ToUpper(c.Short[:1]) + c.Short[1:],
		Long:    strings.ToUpper(c.Short[:1]) + c.Short[1:] + ": " + c.Name + " of zkgo cli.",
		Example: verbExamples[c.Name],
		GroupID: verbGroup,
		Args:    cobra.RangeArgs(c.Least, c.Most),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := v.config(cmd)
			if err != nil {
				return err
			}
			config.Quiet = true
			return inShell(config, func(shell *cli.Shell) (int, error) {
				if err := shell.Connect(config.Server); err != nil {
					return codeFailed, err
				}
				return shell.Command(cmd.Context(), v.words(cmd, args)), nil
			})
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if !v.takesPath(len(args)) {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return v.completePath(cmd, begun)
		},
	}
	if c.More != "" {
		cmd.Long += "\n\n" + c.More
	}
	if c.Most == cli.Any {
		cmd.Args = cobra.MinimumNArgs(c.Least)
	}
	v.register(cmd.Flags())
	v.registerOptions(cmd.Flags())
	return cmd
}

// registerOptions adds the command's options as flags. An option of one letter is the
// shorthand of its long name, unless the letter has another meaning for all commands.
func (v *verb) registerOptions(flags *pflag.FlagSet) {
	for _, o := range v.command.Options {
		name, short := o.Name, ""
		if o.Long != "" {
			name, short = o.Long, o.Name
		}
		if len(name) == 1 || name == "watch" {
			continue // the command ends before a watch can fire
		}
		if short == "h" || short != "" && flags.ShorthandLookup(short) != nil {
			short = ""
		}
		if o.Arg == "" {
			flags.BoolP(name, short, false, o.Help)
		} else {
			flags.StringArrayP(name, short, nil, "`"+o.Arg+"`: "+o.Help)
		}
		v.options[name] = o.Name
	}
}

// words returns the command for the shell.
func (v *verb) words(cmd *cobra.Command, args []string) []string {
	words := []string{v.command.Name}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		option := v.options[flag.Name]
		if option == "" {
			return
		}
		list, ok := flag.Value.(pflag.SliceValue)
		if !ok {
			if flag.Value.String() == "true" {
				words = append(words, "-"+option)
			}
			return
		}
		for _, value := range list.GetSlice() {
			words = append(words, "-"+option+"="+value)
		}
	})
	if len(args) == 0 && v.command.Name == "ls" {
		args = []string{"/"}
	}
	if dash := cmd.ArgsLenAtDash(); dash >= 0 { // "-" and "@x" after it are text
		args = slices.Insert(slices.Clone(args), dash, "--")
	}
	return append(words, args...)
}

// takesPath reports whether the argument with this index is a path.
func (v *verb) takesPath(index int) bool {
	names := strings.Fields(v.command.Verb)[1:]
	if len(names) == 0 {
		return false
	}
	switch strings.Trim(names[min(index, len(names)-1)], "[].") {
	case "path", "from", "to", "first", "second":
		return v.command.Most == cli.Any || index < v.command.Most
	}
	return false
}

// withLongFlags adds a second hyphen to flags such as -depth, in a command line that begins
// with a verb: the help of the shell and its errors name them so.
func withLongFlags(root *cobra.Command, args []string) []string {
	if len(args) == 0 {
		return args
	}
	for _, cmd := range root.Commands() {
		if cmd.Name() == args[0] && cmd.GroupID == verbGroup {
			return append([]string{args[0]}, twoHyphens(cmd, args[1:], true)...)
		}
	}
	return args
}

// completePath completes a path in the tree of the servers that the flags, the environment
// and the context name. We ignore errors, because running the line will report them.
func (f *shellFlags) completePath(cmd *cobra.Command, begun string) ([]string, cobra.ShellCompDirective) {
	config, err := f.config(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	paths, whole := cli.CompletePath(cmd.Context(), config, begun)
	if !whole {
		return paths, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return paths, cobra.ShellCompDirectiveNoFileComp
}

// completeLine completes the words of zkgo cli: its flags, commands, their options, paths.
func (f *cliFlags) completeLine(cmd *cobra.Command, args []string, begun string) (list []string, _ cobra.ShellCompDirective) {
	flags := cmd.Flags()
	if flags.Parse(twoHyphens(cmd, args, false)) != nil {
		return nil, cobra.ShellCompDirectiveDefault // the value of a flag
	}
	words := flags.Args()
	switch {
	case len(words) == 0 && strings.HasPrefix(begun, "-"):
		flags.VisitAll(func(flag *pflag.Flag) { list = append(list, "--"+flag.Name+"\t"+plain(flag.Usage)) })
	case len(words) == 0 || len(words) == 1 && words[0] == "help":
		for _, c := range cli.Commands() {
			list = append(list, c.Name+"\t"+c.Short)
		}
	case strings.HasPrefix(begun, "-"):
		command, _ := cli.Find(words[0])
		for _, o := range command.Options {
			list = append(list, "-"+o.Name+"\t"+o.Help)
		}
	default:
		return f.completePath(cmd, begun)
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

// withoutMarks removes the marks of values' names from the descriptions of flags, which
// completion shows unchanged.
func withoutMarks(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		withoutMarks(sub)
	}
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) { flag.Usage = plain(flag.Usage) })
}

// plain returns a flag's description without the marks of its value's name.
func plain(usage string) string { return strings.ReplaceAll(usage, "`", "") }
