package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
)

func TestMain(m *testing.M) {
	code := m.Run()
	process.Cleanup()
	os.Exit(code)
}

// page is a page of the documentation.
type page struct {
	name     string              // below the root, with slashes
	commands []string            // of its code blocks, without prompt and comment
	inline   []string            // commands within sentences
	configs  []string            // blocks that are a zoo.cfg
	code     map[string][]string // other blocks, by language
}

func root(t *testing.T) string {
	t.Helper()
	dir := must.Get(process.Root())(t)
	return dir
}

// pages reads all pages.
func pages(t *testing.T) []page {
	t.Helper()
	dir := root(t)
	names := []string{"README.md", "CONTRIBUTING.md"}
	must.Do(t, fs.WalkDir(os.DirFS(dir), "docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			names = append(names, path)
		}
		return err
	}))
	var all []page
	for _, name := range names {
		text := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		all = append(all, parse(name, string(text)))
	}
	return all
}

var (
	fence     = regexp.MustCompile("(?m)^ *```(\\w*)\n((?s:.*?)\n)?^ *```$")
	inline    = regexp.MustCompile("`((?:zkgo|make|go run|go test|go build|\\.ci/run|tests/[a-z/]+\\.sh)(?: [^`\n]*)?)`")
	prompt    = regexp.MustCompile(`^\s*[$#] (\S.*)$`)
	continued = regexp.MustCompile(`\s*\\\n\s*`)
	// A line of a crontab.
	crontab = regexp.MustCompile(`^(?:[\d*,/-]+ ){5}(\S.*)$`)
)

func parse(name, text string) page {
	p := page{name: name, code: map[string][]string{}}
	for _, block := range fence.FindAllStringSubmatch(text, -1) {
		switch language, body := block[1], block[2]; language {
		case "sh", "bash", "shell":
			p.commands = append(p.commands, commands(body, func(line string) string { return line })...)
		case "console":
			p.commands = append(p.commands, commands(body, prompted)...)
		case "":
			p.commands = append(p.commands, commands(body, prompted)...)
			if strings.Contains(body, "dataDir=") {
				p.configs = append(p.configs, body)
			}
		default:
			p.code[language] = append(p.code[language], body)
		}
	}
	for _, span := range inline.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		p.inline = append(p.inline, strings.ReplaceAll(span[1], `\|`, "|"))
	}
	return p
}

// prompted returns the command of a line that begins with a prompt or is in a crontab, and "" for a
// command's output.
func prompted(line string) string {
	for _, form := range []*regexp.Regexp{prompt, crontab} {
		if found := form.FindStringSubmatch(line); found != nil {
			return strings.ReplaceAll(found[1], `\%`, "%")
		}
	}
	return ""
}

func commands(block string, command func(line string) string) []string {
	var all []string
	for line := range strings.Lines(continued.ReplaceAllString(block, " ")) {
		if c := uncommented(command(strings.TrimRight(line, "\n"))); c != "" {
			all = append(all, c)
		}
	}
	return all
}

// uncommented returns a command without the comment after it.
func uncommented(line string) string {
	quote := rune(0)
	for i, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '#' && (i == 0 || line[i-1] == ' '):
			return strings.TrimSpace(line[:i])
		}
	}
	return strings.TrimSpace(line)
}

// TestParse: a command that isn't found is not tested.
func TestParse(t *testing.T) {
	t.Parallel()
	p := parse("p.md", "`make x` and\n```console\n$ echo 'a # b' \\\n   c  # comment\na b c\n# id\n```\n"+
		"```sh\n# only a comment\nls -l\n```\n```\n0 2 * * * zkgo backup $(date +\\%F)\n```\n```\ndataDir=x\n```\n```go\nx := 1\n```\n")
	if got := strings.Join(p.commands, "|"); got != "echo 'a # b' c|id|ls -l|zkgo backup $(date +%F)" {
		t.Errorf("commands: %s", got)
	}
	if len(p.inline) != 1 || len(p.configs) != 1 {
		t.Errorf("%q %q", p.inline, p.configs)
	}
}
