package manual

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Write writes the pages into the directories man1 and man5 of dir, and creates them.
func Write(root *cobra.Command, dir string) error {
	for _, section := range []string{"man1", "man5"} {
		if err := os.MkdirAll(filepath.Join(dir, section), 0o755); err != nil { //nolint:gosec // man pages are for all users
			return err
		}
	}
	if err := writeCommands(root, filepath.Join(dir, "man1")); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "man5", "zoo.cfg.5"), zooCfg())
}

// writeCommands writes the pages of a command and of the commands below it.
func writeCommands(cmd *cobra.Command, dir string) error {
	for _, sub := range cmd.Commands() {
		if !documented(sub) {
			continue
		}
		if err := writeCommands(sub, dir); err != nil {
			return err
		}
	}
	return writeFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"), command(cmd))
}

func writeFile(name, text string) error {
	return os.WriteFile(name, []byte(text), 0o644) //nolint:gosec // man pages are for all users
}

// command returns a command's page.
func command(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag() // as the command would when it runs
	var p page
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	p.header(name, "1")
	p.section("NAME")
	p.paragraph(name + " - " + cmd.Short)
	p.section("SYNOPSIS")
	p.paragraph(synopsis(cmd))
	p.section("DESCRIPTION")
	p.prose(cmp.Or(cmd.Long, cmd.Short))
	p.list("OPTIONS", options(cmd))
	p.list("COMMANDS", subcommands(cmd))
	if cmd.CommandPath() == "zkgo cli" {
		shellCommands(&p)
	}
	if cmd.Example != "" {
		p.section("EXAMPLES")
		p.literal(cmd.Example)
	}
	p.list("EXIT STATUS", exitStatus(cmd))
	p.list("ENVIRONMENT", environment(cmd))
	p.list("FILES", files(cmd))
	p.section("SEE ALSO")
	p.paragraph(strings.Join(related(cmd), ", "))
	return p.String()
}

// synopsis returns the form of a command line.
func synopsis(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() && !readsZooCfg(cmd) {
		return cmd.CommandPath() + " command [flags]"
	}
	return cmd.UseLine()
}

// options returns the flags of a command as its help shows them.
func options(cmd *cobra.Command) (all []item) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		term := "--" + f.Name
		if f.Shorthand != "" {
			term = "-" + f.Shorthand + ", " + term
		}
		arg, text := pflag.UnquoteUsage(f)
		if arg != "" {
			term += " " + arg
		}
		switch f.DefValue {
		case "", "[]", "false", "0":
		default:
			text += " (default " + f.DefValue + ")"
		}
		all = append(all, item{term, sentence(text)})
	})
	return all
}

// subcommands returns the commands below a command, with a description of each.
func subcommands(cmd *cobra.Command) (all []item) {
	for _, sub := range cmd.Commands() {
		if documented(sub) {
			all = append(all, item{sub.CommandPath(), sentence(sub.Short)})
		}
	}
	return all
}

// documented reports whether a command has a page.
func documented(cmd *cobra.Command) bool {
	return cmd.IsAvailableCommand() && !cmd.IsAdditionalHelpTopicCommand()
}

// related returns the pages that a page refers to.
func related(cmd *cobra.Command) (names []string) {
	add := func(cmd *cobra.Command) {
		names = append(names, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+"(1)")
	}
	if cmd.HasParent() {
		add(cmd.Parent())
	}
	for _, sub := range cmd.Commands() {
		if documented(sub) {
			add(sub)
		}
	}
	if readsZooCfg(cmd) || !cmd.HasParent() {
		names = append(names, "zoo.cfg(5)")
	}
	return names
}

// readsZooCfg reports whether a command reads a zoo.cfg, i.e. whether it has the flag --set.
func readsZooCfg(cmd *cobra.Command) bool { return cmd.Flags().Lookup("set") != nil }
