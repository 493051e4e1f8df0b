package server

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/ops/fourletter"
	"github.com/zkgo/zkgo/internal/ops/metrics"
	"github.com/zkgo/zkgo/internal/ops/mntr"
)

// table reads the rows of a table of docs/operate/compatibility.md as a map from the names
// of the first column to the second.
func table(t *testing.T, section, head string) map[string]string {
	t.Helper()
	b, err := os.ReadFile("../docs/operate/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	_, text, found := strings.Cut(text, "\n| "+head+" | | |\n|---|---|---|\n")
	if !found {
		t.Fatalf("docs/operate/compatibility.md has no table of %s below %s", head, section)
	}
	text, _, _ = strings.Cut(text+"\n", "\n\n")
	rows := map[string]string{}
	for line := range strings.Lines(text) {
		m := regexp.MustCompile("^\\| (`[^|]+`) \\| ([^|]+) \\|").FindStringSubmatch(line)
		if m == nil {
			t.Errorf("docs/operate/compatibility.md: %q is not a row of %s", line, head)
			continue
		}
		for _, name := range strings.Split(m[1], ", ") {
			name = strings.Trim(name, "`")
			if rows[name] != "" {
				t.Errorf("docs/operate/compatibility.md has %s twice", name)
			}
			rows[name] = m[2]
		}
	}
	return rows
}

// documented compares the exported metrics and the other lines of mntr with the tables of
// metrics, and these tables with ZooKeeper's list.
func documented(t *testing.T, exported, notes map[string]bool) {
	t.Helper()
	theirs, ours := table(t, "Metrics", "ZooKeeper's metric"), table(t, "Metrics", "zkgo's own")
	b, err := os.ReadFile("../internal/ops/metrics/testdata/zookeeper.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		if name, _, _ := strings.Cut(line, " "); name != "#" {
			known[name] = true
			if theirs[name] == "" {
				t.Errorf("docs/operate/compatibility.md lacks %s", name)
			}
		}
	}
	for name, verdict := range theirs {
		switch {
		case !known[name]:
			t.Errorf("docs/operate/compatibility.md: ZooKeeper has no %s", name)
		case verdict == "same" || verdict == "better":
			if !exported[name] && !notes[name] {
				t.Errorf("docs/operate/compatibility.md: %s is %s, but no server shows it", name, verdict)
			}
		case verdict == "always 0":
			if exported[name] && !mntr.AlwaysZero(name) {
				t.Errorf("docs/operate/compatibility.md: %s is %s, but a server counts it", name, verdict)
			}
		default:
			t.Errorf("docs/operate/compatibility.md: %s is %q", name, verdict)
		}
	}
	for name := range exported {
		if theirs[name] == "" && ours[name] == "" {
			t.Errorf("docs/operate/compatibility.md does not have %s", name)
		}
	}
	for name := range ours {
		if !exported[name] && elsewhere[name] == "" || known[name] {
			t.Errorf("docs/operate/compatibility.md: %s is not one of zkgo's own metrics", name)
		}
	}
}

// TestPrometheusHasEveryMetric compares a leader's metrics for Prometheus with ZooKeeper's
// list of metrics and their types. ZooKeeper registers all metrics with every provider.
func TestPrometheusHasEveryMetric(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../internal/ops/metrics/testdata/zookeeper.txt")
	if err != nil {
		t.Fatal(err)
	}
	e := startEnsemble(t, 3, func(c *Config) { c.Metrics = &Metrics{Addr: "127.0.0.1:0", Handler: metrics.Handler} })
	leader, _ := e.leader()
	code, body := fetch(t, "http://"+leader.MetricsAddr()+"/metrics")
	if code != http.StatusOK {
		t.Fatalf("%d: %s", code, body)
	}
	verdicts := table(t, "Metrics", "ZooKeeper's metric")
	for line := range strings.Lines(string(b)) {
		name, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		// Keyed metrics appear with their first key, and texts aren't series. Only an
		// observer of an observer master has observer_master_id.
		if !slices.Contains([]string{"counter", "gauge", "summary"}, kind) || strings.HasSuffix(name, "_per_namespace") || name == "observer_master_id" {
			continue
		}
		if !strings.Contains(body, "\n# TYPE "+name+" "+kind+"\n") {
			t.Errorf("there is no %s %s", kind, name)
		}
		zero := name + " 0\n"
		if kind == "summary" {
			zero = name + "_count 0\n"
		}
		if verdicts[name] == "always 0" && (!mntr.AlwaysZero(name) || !strings.Contains(body, "\n"+zero)) {
			t.Errorf("%s is not always 0", name)
		}
	}
}

// TestEveryWordIsDocumented compares the words with their table.
func TestEveryWordIsDocumented(t *testing.T) {
	t.Parallel()
	rows := table(t, "Four-letter words", "word")
	for _, word := range fourletter.Words() {
		if rows[word] != "same" && rows[word] != "better" {
			t.Errorf("docs/operate/compatibility.md: %s is %q", word, rows[word])
		}
		delete(rows, word)
	}
	for word := range rows {
		t.Errorf("docs/operate/compatibility.md: there is no word %s", word)
	}
}
