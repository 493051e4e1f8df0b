package admin

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// docs/operate/compatibility.md should list all commands with all their names, including
// all of ZooKeeper's.
func TestTheDocumentListsTheCommands(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile("../../../docs/operate/compatibility.md"))(t)
	_, section, ok := strings.Cut(string(text), "\n## AdminServer commands\n")
	if !ok {
		t.Fatal("no section about the commands")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string]bool{}
	row := regexp.MustCompile("^\\| (`[a-z_`,; ]+`) \\| (same|better|no effect|missing) \\|")
	for line := range strings.Lines(section) {
		if m := row.FindStringSubmatch(line); m != nil {
			for names := range strings.SplitSeq(strings.ReplaceAll(m[1], "`", ""), "; ") {
				documented[names] = true
			}
		}
	}
	commands := map[string]bool{}
	for _, c := range all() {
		names := strings.Join(c.names, ", ")
		commands[names] = true
		if !documented[names] {
			t.Errorf("the command %s is not in the table", names)
		}
	}
	if len(documented) != len(commands) {
		t.Errorf("the table has %d commands, there are %d", len(documented), len(commands))
	}
	page, err := os.ReadFile("testdata/commands.html") // from ZooKeeper 3.9.5
	if err != nil {
		t.Fatal(err)
	}
	names := byName()
	for _, m := range regexp.MustCompile(`/commands/(\w+)"`).FindAllStringSubmatch(string(page), -1) {
		if c, ok := names[m[1]]; !ok || !slices.Contains(c.names, m[1]) {
			t.Errorf("ZooKeeper's %s is missing", m[1])
		}
	}
}
