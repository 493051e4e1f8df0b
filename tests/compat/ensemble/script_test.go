package ensemble

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/compat/conformance"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
)

var record = flag.Bool("record", false, "record the goldens anew from the real server")

// scripts returns the paths of the scripts.
func scripts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	return files
}

// play starts three members, and two more servers that list themselves but aren't members at first,
// and runs a script against one of the members.
func play(t *testing.T, file string, real bool) string {
	t.Helper()
	text := must.Get(os.ReadFile(file))(t)
	c := newCluster(t, 5)
	c.real = real
	var ports []string
	for id, n := range c.nodes {
		ports = append(ports, fmt.Sprintf("{q%d}", id), fmt.Sprint(n.quorum), fmt.Sprintf("{e%d}", id), fmt.Sprint(n.election),
			fmt.Sprintf("{c%d}", id), fmt.Sprint(n.client))
	}
	s := must.Get(conformance.ParseScript(filepath.Base(file), strings.NewReplacer(ports...).Replace(string(text))))(t)
	c.settings = s.Server
	for id := 1; id <= 3; id++ {
		c.write(id, c.nodes[1].line(""), c.nodes[2].line(""), c.nodes[3].line(""))
	}
	for id := 4; id <= 5; id++ {
		c.write(id, c.nodes[1].line(""), c.nodes[2].line(""), c.nodes[3].line(""), c.nodes[id].line("observer"))
	}
	c.start(3, 2)
	if real {
		c.await(3, 2) // the highest id leads; zkgo waits for it, ZooKeeper for no server
	}
	c.start(1)
	c.await(1, 2, 3)
	c.start(4, 5)
	if real {
		c.await(4, 5)
	} else {
		c.says(4, "reconfig -add")
		c.says(5, "reconfig -add")
	}
	asked := 1
	if bytes.HasPrefix(text, []byte("# On the leader.")) {
		asked = 3 // in both, the highest id is the first leader
	}
	transcript, err := conformance.Run(s, c.nodes[asked].addr())
	if err != nil {
		t.Errorf("%v\n%s", err, transcript)
	}
	for i := 0; i < len(ports); i += 2 {
		ports[i], ports[i+1] = ports[i+1], ports[i]
	}
	return versions(strings.NewReplacer(ports...).Replace(transcript))
}

// versions replaces the versions in configurations by the order in which they first
// appeared, and sorts the servers by id: ZooKeeper prints them in the order of a Java
// HashMap.
func versions(transcript string) string {
	transcript = regexp.MustCompile(`data="server[^"]*\\nversion`).ReplaceAllStringFunc(transcript, func(data string) string {
		lines := strings.Split(strings.TrimSuffix(strings.TrimPrefix(data, `data="`), `\nversion`), `\n`)
		slices.Sort(lines)
		return `data="` + strings.Join(lines, `\n`) + `\nversion`
	})
	seen := map[string]string{}
	return regexp.MustCompile(`version=[0-9a-f]+`).ReplaceAllStringFunc(transcript, func(v string) string {
		if seen[v] == "" {
			seen[v] = fmt.Sprintf("version=V%d", len(seen)+1)
		}
		return seen[v]
	})
}

func goldenOf(file string) string { return strings.TrimSuffix(file, ".txt") + ".golden" }

// TestRealServer compares the goldens with the real ZooKeeper, or records them.
func TestRealServer(t *testing.T) {
	if os.Getenv("ZKGO_LIVE") != "1" && !*record {
		t.Skip("set ZKGO_LIVE=1 to hold the goldens against the real server, or -record to record them")
	}
	oracle.Need(t)
	for _, file := range scripts(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			got := play(t, file, true)
			if *record {
				must.Do(t, os.WriteFile(goldenOf(file), []byte(got), 0o644))
				return
			}
			compare(t, file, got)
		})
	}
}

// TestScripts runs the scripts against zkgo.
func TestScripts(t *testing.T) {
	for _, file := range scripts(t) {
		t.Run(filepath.Base(file), func(t *testing.T) { compare(t, file, play(t, file, false)) })
	}
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	want := must.Get(os.ReadFile(goldenOf(file)))(t)
	if d := conformance.Compare(string(want), got); d != "" {
		t.Error(d)
	}
}
