// Package apps runs real applications, e.g. Kafka and Patroni, against zkgo processes and
// against Apache ZooKeeper. They need Java, Python, root and the package registries, so
// run.sh does the work. Here we only check run.sh itself.
package apps

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestPage checks that the page of the docs has a result for each application, of the
// version that we run.
func TestPage(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("needs Python: ", err)
	}
	page := string(must.Get(os.ReadFile("../../../docs/operate/applications.md"))(t))
	list := must.Get(exec.Command("./run.sh", "--list").Output())(t)
	found := 0
	for line := range strings.Lines(string(list)) {
		_, about, _ := strings.Cut(strings.TrimSpace(line), " ")
		title, _, _ := strings.Cut(strings.TrimSpace(about), ": ")
		if found++; !strings.Contains(page, "| "+title+" | ") {
			t.Errorf("docs/operate/applications.md has no row for %s: run make apps and make apps-page", title)
		}
	}
	if found < 5 {
		t.Errorf("run.sh --list names only %d applications", found)
	}
}

// TestUnknown checks that run.sh refuses an unknown application, and names the known ones.
func TestUnknown(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("needs Python: ", err)
	}
	for _, arguments := range [][]string{{"kafak"}, {"--servers", "etcd", "kafka"}, {"--fault", "rain", "kafka"}} {
		out, err := exec.Command("./run.sh", arguments...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "choose from") {
			t.Errorf("run.sh %v: %v: %s", arguments, err, out)
		}
	}
}
