package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/process"
)

// TestCommandsExist checks that everything a command names exists, on all pages.
func TestCommandsExist(t *testing.T) {
	t.Parallel()
	c := checker{binary: process.Binary(t), root: root(t), help: map[string]string{}}
	found := 0
	for _, p := range pages(t) {
		for _, command := range append(p.commands, p.inline...) {
			found++
			if err := c.check(command); err != nil {
				t.Errorf("%s: %s: %v", p.name, command, err)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d commands found", found)
	}
}

// TestMissingIsFound: the checks should fail for a name that doesn't exist.
func TestMissingIsFound(t *testing.T) {
	t.Parallel()
	c := checker{binary: process.Binary(t), root: root(t), help: map[string]string{}}
	for _, command := range []string{
		"zkgo servers", "zkgo server --no-such x.cfg", "a | A=b zkgo backup verify -x FILE", "zkgo cli -servers a ls /",
		"zkgo cli -server a lss /", "zkgo cli -server a ls -Q /", "make nothing", "go run ./cmd/none", "go test ./none/...",
		"tests/none/run.sh x", "true && docker build -f deploy/none .",
	} {
		if c.check(command) == nil {
			t.Errorf("%s passes", command)
		}
	}
}

type checker struct {
	binary, root string
	mu           sync.Mutex
	help         map[string]string
}

var (
	// separator is between commands of a pipe or a list; word is a word, perhaps quoted.
	separator = regexp.MustCompile(`\s(?:\||&&|;)\s`)
	word      = regexp.MustCompile(`'[^']*'|"[^"]*"|\$\([^)]*\)|[^\s\[\]]+`)
	variable  = regexp.MustCompile(`^[A-Z_]+=`)
	repoPath  = regexp.MustCompile(`^(?:\./.*|(?:cmd|deploy|tests|server|client|recipes|tree|proto|docs|\.ci)(?:/.*)?)$`)
	goal      = regexp.MustCompile(`^[a-z-]+$`)
)

// check checks each command of a line.
func (c *checker) check(line string) error {
	for _, simple := range separator.Split(line, -1) {
		words := word.FindAllString(simple, -1)
		for len(words) > 0 && variable.MatchString(words[0]) {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		for _, w := range words {
			if err := c.path(w); err != nil {
				return err
			}
		}
		if err := c.program(words[0], words[1:]); err != nil {
			return err
		}
	}
	return nil
}

// path checks a word that names something in the repository.
func (c *checker) path(w string) error {
	if !repoPath.MatchString(w) {
		return nil
	}
	_, err := os.Stat(filepath.Join(c.root, strings.TrimSuffix(w, "/...")))
	return err
}

func (c *checker) program(name string, words []string) error {
	switch name {
	case "zkgo":
		return c.zkgo(nil, words)
	case "make":
		return c.targets(words)
	}
	return nil
}

func (c *checker) targets(words []string) error {
	makefile, err := os.ReadFile(filepath.Join(c.root, "Makefile"))
	if err != nil {
		return err
	}
	for _, w := range words {
		if goal.MatchString(w) && !strings.Contains(string(makefile), "\n"+w+":") {
			return fmt.Errorf("no target %s", w)
		}
	}
	return nil
}

var (
	flagLine = regexp.MustCompile(`(?m)^\s+(?:-(\w)|(?:-(\w), )?--?([\w-]+))( \S+)?(?:\s{2,}|$)`)
	listed   = regexp.MustCompile(`(?m)^  ([\w-]+)\s{2,}`)
)

// zkgo checks the words after a subcommand.
func (c *checker) zkgo(sub, words []string) error {
	help, err := c.output(append(append([]string{}, sub...), "--help")...)
	if err != nil {
		return err
	}
	_, list, group := strings.Cut(help, "[command]\n") // the usage of a group of commands
	list, _, _ = strings.Cut(list, "\nFlags:")
	if group && len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		for _, name := range listed.FindAllStringSubmatch(list, -1) {
			if name[1] == words[0] {
				return c.zkgo(append(sub, words[0]), words[1:])
			}
		}
		if len(sub) == 0 {
			return fmt.Errorf("no command %s", words[0])
		}
	}
	words, err = flags(help, words, len(sub) == 1 && sub[0] == "cli")
	if err != nil || len(words) == 0 || words[0] == "<" {
		return err
	}
	help, err = c.output("cli", "help", words[0])
	if err != nil {
		return fmt.Errorf("no command %s", words[0])
	}
	_, err = flags(help, words[1:], false)
	return err
}

// flags checks the flags among words. If it stops at the first word that is neither
// one nor its value, it returns the words from there on.
func flags(help string, words []string, stops bool) ([]string, error) {
	known := map[string]bool{} // and whether a value follows
	for _, f := range flagLine.FindAllStringSubmatch(help, -1) {
		for _, name := range f[1:4] {
			known[name] = f[4] != ""
		}
	}
	for i := 0; i < len(words); i++ {
		name := strings.TrimLeft(words[i], "-")
		if name == words[i] || name == "" {
			if stops {
				return words[i:], nil
			}
			continue
		}
		name, _, joined := strings.Cut(name, "=")
		value, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("no flag %s", words[i])
		}
		if value && !joined {
			i++
		}
	}
	return nil, nil
}

func (c *checker) output(args ...string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := strings.Join(args, " ")
	if help, ok := c.help[key]; ok {
		return help, nil
	}
	out, err := exec.Command(c.binary, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("zkgo %s: %w", key, err)
	}
	c.help[key] = string(out)
	return c.help[key], nil
}
