package manual

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/zkgo/zkgo/internal/version"
)

// Write writes the pages into the directories man1 and man5 of dir, and creates them.
func Write(root *cobra.Command, dir string) error {
	for _, section := range []string{"man1", "man5"} {
		if err := os.MkdirAll(filepath.Join(dir, section), 0o755); err != nil { //nolint:gosec // man pages are for all users
			return err
		}
	}
	root.DisableAutoGenTag = true
	if err := writeCommands(root, filepath.Join(dir, "man1")); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "man5", "zoo.cfg.5"), zooCfg())
}

// writeCommands writes the pages of a command and of the commands below it.
func writeCommands(cmd *cobra.Command, dir string) error {
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := writeCommands(sub, dir); err != nil {
			return err
		}
	}
	text, err := command(cmd)
	if err != nil {
		return fmt.Errorf("%s: %w", cmd.CommandPath(), err)
	}
	return writeFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"), text)
}

func writeFile(name, text string) error {
	return os.WriteFile(name, []byte(text), 0o644) //nolint:gosec // man pages are for all users
}

// source is the third and fourth argument of a page's header.
func source() string { return "zkgo " + version.Own() }

// command returns a command's page: cobra's, and before its SEE ALSO what cobra doesn't know.
func command(cmd *cobra.Command) (string, error) {
	at := version.BuildTime() // instead of today, so that a version always has the same pages
	var b bytes.Buffer
	if err := doc.GenMan(cmd, &doc.GenManHeader{Section: "1", Source: source(), Manual: "zkgo", Date: &at}, &b); err != nil {
		return "", err
	}
	const last = "\n.SH SEE ALSO\n"
	before, after, found := strings.Cut(b.String(), last)
	if !found {
		return "", fmt.Errorf("the page has no section SEE ALSO")
	}
	var p page
	if cmd.CommandPath() == "zkgo cli" {
		shellCommands(&p)
	}
	p.list("EXIT STATUS", exitStatus(cmd))
	p.list("ENVIRONMENT", environment(cmd))
	p.list("FILES", files(cmd))
	also := ""
	if readsZooCfg(cmd) || !cmd.HasParent() {
		also = `, \fBzoo.cfg(5)\fP`
	}
	return before + "\n" + p.String() + last[1:] + strings.TrimRight(after, "\n") + also + "\n", nil
}

// readsZooCfg reports whether a command reads a zoo.cfg: those that do have the flag --set.
func readsZooCfg(cmd *cobra.Command) bool { return cmd.Flags().Lookup("set") != nil }
