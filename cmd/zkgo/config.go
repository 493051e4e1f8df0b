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
		Short: "Explain a configuration",
		Example: `  zkgo config check /etc/zookeeper/zoo.cfg
  zkgo config show /etc/zookeeper/zoo.cfg -o json`,
	}
	cmd.AddCommand(configCheckCommand(), configShowCommand())
	return cmd
}

// configFlags holds the flags of zkgo config.
type configFlags struct {
	serverFlags
	output          string
	strict, onlySet bool
}

// command adds the flags that both subcommands share.
func (f *configFlags) command(cmd *cobra.Command) *cobra.Command {
	flags := cmd.Flags()
	f.reading(flags, "for the data, as of zkgo server")
	f.port(flags, "for clients, as of zkgo server")
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
		Short: "Say in words what a configuration means",
		Long: `Say what a server with this configuration would be, what each line means, what
has no effect and why, and what looks wrong. Nothing is started and nothing is
written.

The exit code is 0 when zkgo server would take the configuration on this machine and
as this user, 1 when it would refuse it, with every reason, and with --strict also 1
when there are warnings. Key stores, JAAS files and certificates are read. An address
to listen on that does not resolve, or is not one of this machine, is a warning: the
file may be meant for another machine. A zoo.cfg - is the standard input. Whether a port is in use, and what the data
directory holds, is left to the start.`,
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
	cmd.Flags().BoolVar(&f.strict, "strict", false, "warnings are errors")
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
		Short: "Print every effective value and where it comes from",
		Long: `Print every key that means something with the value that a server would run
with, and where that comes from: a line of a file, --set or another flag, or the
default. Without a file it is what zkgo server runs with when it is given none.
Passwords are hidden.`,
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
	cmd.Flags().BoolVar(&f.onlySet, "only-set", false, "leave out what is as by default")
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
