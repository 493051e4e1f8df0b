package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/internal/zoocfg"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check or print a configuration",
		Example: `  zkgo config check /etc/zookeeper/zoo.cfg
  zkgo config show /etc/zookeeper/zoo.cfg -o json`,
	}
	cmd.AddCommand(configCheckCommand(), configShowCommand())
	return cmd
}

// configFlags contains the flags of zkgo config.
type configFlags struct {
	serverFlags
	output          string
	strict, onlySet bool
}

// command adds the flags that both subcommands share.
func (f *configFlags) command(cmd *cobra.Command) *cobra.Command {
	flags := cmd.Flags()
	f.reading(flags, "for the data, as for zkgo server")
	f.port(flags, "for clients, as for zkgo server")
	outputVar(flags, &f.output)
	return cmd
}

// read reads the configuration in the arguments.
func (f *configFlags) read(cmd *cobra.Command, args []string) (*zoocfg.Config, error) {
	if err := f.name(cmd, args); err != nil {
		return nil, err
	}
	return f.zooCfg()
}

func configCheckCommand() *cobra.Command {
	var f configFlags
	cmd := f.command(&cobra.Command{
		Use:   "check [zoo.cfg]",
		Short: "Check a configuration and explain it",
		Long: `Explain each line of a configuration, list the settings that have no effect, and
report mistakes. The command neither starts a server nor writes files.

The exit code is 0 if zkgo server would start with the configuration on this machine
and as this user, and 1 if it would not; all errors are listed. With --strict,
warnings are errors, too. The command reads key stores, JAAS files and certificates. A
listen address that does not resolve or belongs to another machine is only a
warning, because the file may be for another machine. It does not check whether
ports are free or what the data directory contains.

Use - as zoo.cfg to read the standard input.`,
		Example: `  zkgo config check /etc/zookeeper/zoo.cfg
  zkgo config check --strict --set tickTime=500 zoo.cfg`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			z, err := f.read(cmd, args)
			if err != nil {
				return err
			}
			return f.check(cmd.Context(), z, cmd.OutOrStdout())
		},
	})
	cmd.Flags().BoolVar(&f.strict, "strict", false, "treat warnings as errors")
	return cmd
}

func (f *configFlags) check(ctx context.Context, z *zoocfg.Config, w io.Writer) error {
	check := z.Check()
	cfg, refused := runnable(z)
	for _, err := range cfg.CheckAddresses(ctx) {
		check.Warnings = append(check.Warnings, err.Error())
	}
	if f.output == "json" {
		if err := writeJSON(w, check); err != nil {
			return err
		}
	} else if _, err := check.WriteTo(w); err != nil {
		return err
	}
	if refused != nil {
		return fmt.Errorf("the server would refuse it: %w", refused)
	}
	if n := len(check.Warnings); f.strict && n > 0 {
		return fmt.Errorf("%d warnings", n)
	}
	return nil
}

func configShowCommand() *cobra.Command {
	var f configFlags
	cmd := f.command(&cobra.Command{
		Use:   "show [zoo.cfg]",
		Short: "Print all effective settings and their origins",
		Long: `Print every setting that has an effect, its value, and where the value comes from: a
line of the file, a flag, or the default. Without a file, it prints the default
settings of zkgo server. Passwords are hidden.`,
		Example: `  zkgo config show
  zkgo config show /etc/zookeeper/zoo.cfg --only-set
  zkgo config show zoo.cfg -o json | jq '.[] | select(.key == "tickTime")'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			z, err := f.read(cmd, args)
			if err != nil {
				return err
			}
			return f.show(z, cmd.OutOrStdout())
		},
	})
	cmd.Flags().BoolVar(&f.onlySet, "only-set", false, "omit settings that have their default values")
	return cmd
}

func (f *configFlags) show(z *zoocfg.Config, w io.Writer) error {
	list := []zoocfg.Setting{}
	for _, s := range z.Settings() {
		if f.onlySet && !s.Set() {
			continue
		}
		switch {
		case s.Origin != "--set":
		case s.Key == "dataDir" && f.dataDir != "":
			s.Origin = "--data-dir"
		case s.Key == "dataLogDir" && f.dataLogDir != "":
			s.Origin = "--data-log-dir"
		case s.Key == "clientPort" && f.clientPort != unset:
			s.Origin = "--client-port"
		}
		list = append(list, s)
	}
	if f.output == "json" {
		return writeJSON(w, list)
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, s := range list {
		if _, err := fmt.Fprintf(t, "%s\t= %s\t(%s)\n", s.Key, s.Value, s.Origin); err != nil {
			return err
		}
	}
	return t.Flush()
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
