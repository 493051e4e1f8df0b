package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/internal/cli"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// manPages writes the man pages and returns a function that reads one without its markup.
func manPages(t *testing.T) func(name string) string {
	t.Helper()
	dir := t.TempDir()
	if _, _, err := zkgo(t, "man", dir); err != nil {
		t.Fatal(err)
	}
	return func(name string) string {
		b := must.Get(os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))))(t)
		return strings.NewReplacer(`\-`, "-", `\fB`, "", `\fP`, "", `\(ti`, "~").Replace(string(b))
	}
}

// badMarkup matches default values as Go writes them, and what mandoc -Tlint warns about: a
// tab in filled text, and a paragraph at the beginning of a section.
var badMarkup = regexp.MustCompile(`(?m)^-.*(=false|=\[\]|="").*$|\.S[HS] .*\n\.PP|\n[^.\n].*\n\t`)

// Every command has a page with its flags and exit codes, and the commands below it.
func TestManPageOfEveryCommand(t *testing.T) {
	t.Parallel()
	page := manPages(t)
	count := 0
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		text := page("man1/" + strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1")
		count++
		for _, want := range []string{".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH OPTIONS", ".SH EXIT STATUS", ".SH SEE ALSO"} {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("the page of %s has no %q", cmd.CommandPath(), want)
			}
		}
		if m := badMarkup.FindString(text); m != "" {
			t.Errorf("the page of %s has %q", cmd.CommandPath(), m)
		}
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() && !strings.Contains(text, "\n.TP\n"+sub.CommandPath()+"\n"+sub.Short) {
				t.Errorf("the page of %s doesn't say what %s does", cmd.CommandPath(), sub.CommandPath())
			}
		}
		if sets := cmd.Flags().Lookup("set") != nil; sets != (strings.Contains(text, "zoo.cfg(5)") && strings.Contains(text, ".SH FILES") && strings.Contains(text, "SERVER_JVMFLAGS")) && cmd.HasParent() {
			t.Errorf("the page of %s, which reads a zoo.cfg: %v:\n%s", cmd.CommandPath(), sets, text)
		}
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				check(sub)
			}
		}
	}
	check(newCommand())
	if count < 25 {
		t.Errorf("only %d pages", count)
	}
}

// The page of the shell has every command with every option, and zoo.cfg(5) every key.
func TestManPagesAreComplete(t *testing.T) {
	t.Parallel()
	page := manPages(t)
	shell := page("man1/zkgo-cli.1")
	for _, c := range cli.Commands() {
		_, rest, ok := strings.Cut(shell, "\n.SS "+strings.TrimSpace(c.Name+" "+c.Usage)+"\n")
		if !ok {
			t.Errorf("zkgo-cli(1) has no command %s", c.Name)
			continue
		}
		section, _, _ := strings.Cut(rest, "\n.S")
		for _, o := range c.Options {
			if !regexp.MustCompile(`\n-` + regexp.QuoteMeta(o.Name) + `( .*)?\n`).MatchString(section) {
				t.Errorf("zkgo-cli(1): %s has no option -%s:\n%s", c.Name, o.Name, section)
			}
		}
	}
	file := page("man5/zoo.cfg.5")
	for _, d := range zoocfg.Descriptions() {
		if !strings.Contains(file, "\n.TP\n"+d.Key+"\n") {
			t.Errorf("zoo.cfg(5) has no key %s", d.Key)
		}
	}
}

// Every variable that the source names next to a call of Getenv is in zkgo(1).
func TestManPageOfVariables(t *testing.T) {
	t.Parallel()
	text := manPages(t)("man1/zkgo.1")
	_, section, _ := strings.Cut(text, "\n.SH ENVIRONMENT\n")
	section, _, _ = strings.Cut(section, "\n.SH ")
	variable := regexp.MustCompile(`^"[A-Z][A-Z0-9_]{2,}[A-Z0-9]"$`)
	found := map[string]bool{}
	for _, dir := range []string{".", "../../internal/cli", "../../internal/offline/container"} {
		for _, name := range must.Get(filepath.Glob(filepath.Join(dir, "*.go")))(t) {
			b := must.Get(os.ReadFile(name))(t)
			if strings.HasSuffix(name, "_test.go") || !strings.Contains(string(b), "etenv(") && filepath.Base(name) != "backup.go" && !strings.Contains(name, "container") {
				continue
			}
			ast.Inspect(must.Get(parser.ParseFile(token.NewFileSet(), name, b, 0))(t), func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && variable.MatchString(lit.Value) {
					found[strings.Trim(lit.Value, `"`)] = true
				}
				return true
			})
		}
	}
	for name := range found {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(section) {
			t.Errorf("zkgo(1) has no variable %s", name)
		}
	}
	if len(found) < 20 {
		t.Errorf("only %d variables in the source", len(found))
	}
}
