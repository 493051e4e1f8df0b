package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func contextCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "context",
		Short: "List and select contexts (named connection settings)",
		Long: `A context is a named set of connection settings: servers, TLS and credentials. The
contexts are stored in ~/.config/zkgo/config.yaml, or in the file that ZKGO_CONFIG
names. The keys are the names of flags:

  current-context: prod
  contexts:
    prod:
      server: zk1:2281,zk2:2281,zk3:2281
      admin: https://zk1:8080            # for zkgo backup
      tls-ca: ca.pem                     # relative to the file
      auth: "@prod.auth"                 # read from a file
      auth-command: pass show zk/prod    # or printed by a command
    dev:
      server: localhost:2181

Flags override environment variables (--tls-ca: ZKGO_TLS_CA), and variables override
the context. If a flag or ZKGO_SERVER names the servers, commands ignore the current
context, because its credentials are for other servers. They still use a context from
--context or ZKGO_CONTEXT. A file that contains credentials must have mode 600.`,
		Example: `  zkgo context ls
  zkgo context use prod
  zkgo get --context dev /app/config`,
	}
	cmd.AddCommand(contextListCommand(), contextUseCommand(), contextShowCommand())
	return cmd
}

// contextList is the result to print.
type contextList []contextEntry

// contextEntry is a line of the list.
type contextEntry struct {
	Name    string `json:"name"`
	Current bool   `json:"current"`
	Server  string `json:"server,omitempty"`
}

// Text implements texter.
func (l contextList) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, e := range l {
		mark := " "
		if e.Current {
			mark = "*"
		}
		fmt.Fprintf(t, "%s %s\t%s\n", mark, e.Name, e.Server) //nolint:errcheck // Flush reports it
	}
	return t.Flush()
}

func contextListCommand() *cobra.Command {
	var out resultFlags
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List the contexts; * marks the current one",
		Example: "  zkgo context ls",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := loadContexts(os.Getenv)
			if err != nil {
				return err
			}
			list := contextList{}
			current := cmp.Or(os.Getenv(variable("context")), file.Current)
			for _, name := range file.Names() {
				values, err := file.Context(name)
				if err != nil {
					return err
				}
				list = append(list, contextEntry{name, name == current, strings.Join(values["server"], ",")})
			}
			if len(list) == 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "There are no contexts in %s. See: zkgo context --help\n", file.Path) //nolint:errcheck // a notice
			}
			return out.print(cmd.OutOrStdout(), list)
		},
	}
	outputVar(cmd.Flags(), &out.output)
	return cmd
}

func contextUseCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "use NAME",
		Short:             "Select the current context",
		Example:           "  zkgo context use prod",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeContext,
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := loadContexts(os.Getenv)
			if err != nil {
				return err
			}
			if err := file.Use(args[0]); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "The current context is %s.\n", args[0]) //nolint:errcheck // a notice
			if name := variable("context"); os.Getenv(name) != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s=%s overrides it here.\n", name, os.Getenv(name)) //nolint:errcheck // a notice
			}
			return nil
		},
	}
}

// completeContext completes the only argument of a command.
func completeContext(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeContexts(cmd, args, begun)
}

// shownSettings is the result to print.
type shownSettings []shownSetting

// shownSetting is a setting with its value.
type shownSetting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// Text implements texter.
func (l shownSettings) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, s := range l {
		fmt.Fprintf(t, "%s\t= %s\t(%s)\n", s.Name, cmp.Or(s.Value, "-"), s.Origin) //nolint:errcheck // Flush reports it
	}
	return t.Flush()
}

func contextShowCommand() *cobra.Command {
	var f connectFlags
	var out resultFlags
	cmd := &cobra.Command{
		Use:   "show [NAME]",
		Short: "Print the effective connection settings and their origins",
		Long: `Print the settings that commands use with a context (default: the current one), and
where each comes from: a flag, a variable, the context or the default. Credentials
are hidden.`,
		Example: `  zkgo context show
  zkgo context show prod -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeContext,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if f.context != "" {
					return usagef("two contexts: %s and --context %s", args[0], f.context)
				}
				f.context = args[0]
			}
			if err := f.resolve(cmd); err != nil {
				return err
			}
			return out.print(cmd.OutOrStdout(), f.shown(cmd.Flags()))
		},
	}
	f.register(cmd.Flags(), append(slices.Clone(clientSettings), "from"))
	cmd.Flags().Lookup("from").Hidden = true
	f.withoutCommand = true
	outputVar(cmd.Flags(), &out.output)
	return cmd
}

// shown returns the settings in the order of the help.
func (f *connectFlags) shown(flags *pflag.FlagSet) shownSettings {
	list := shownSettings{{"context", f.settings.name, f.contextOrigin(flags)}}
	for _, name := range f.registered {
		flag := flags.Lookup(name)
		value, origin := flag.Value.String(), f.settings.origin[name]
		switch {
		case name == "context":
			continue
		case flag.Changed:
			origin = "--" + name
		case origin == "":
			origin = "default"
		}
		if slice, ok := flag.Value.(pflag.SliceValue); ok {
			value = strings.Join(hidden(name, slice.GetSlice()), ", ")
		} else if value != "" {
			value = hidden(name, []string{value})[0]
		}
		list = append(list, shownSetting{key(name), value, origin})
	}
	if v := f.settings.values[authCommand]; v != nil {
		list = append(list, shownSetting{authCommand, strings.Join(v, " "), "context " + f.settings.name})
	}
	return list
}

// contextOrigin returns what chose the context.
func (f *connectFlags) contextOrigin(flags *pflag.FlagSet) string {
	switch {
	case f.context != "":
		return "the command line"
	case os.Getenv(variable("context")) != "":
		return variable("context")
	case f.settings.name != "":
		return f.settings.file.Path
	case flags.Changed("server"), os.Getenv(variable("server")) != "":
		return "the servers are named without one"
	}
	return "default"
}

// hidden replaces the credentials among the values of a setting. The names of files aren't
// secret.
func hidden(name string, values []string) []string {
	values = slices.Clone(values)
	for i, v := range values {
		if scheme, _, found := strings.Cut(v, ":"); (name == "auth" || name == "sasl") && !strings.HasPrefix(v, "@") {
			if values[i] = "******"; found {
				values[i] = scheme + ":******"
			}
		}
	}
	return values
}
