package takeover

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
)

var planted = flag.Bool("planted", false, "run TestPlanted, which breaks zkgo on purpose")

// mistake is planted in a copy of the source that only the compiler reads.
type mistake struct {
	name  string
	edits []edit
	test  string   // that must find it
	at    string   // flag -at of the test; "" for the default
	found []string // regular expressions; one must match the test's output
}

// edit replaces a text that occurs once in a file.
type edit struct{ file, old, new string }

const (
	applyMirror = "raftfsm/internal/apply/mirror.go"
	cutoverFile = "internal/takeover/cutover.go"
)

// noDigests makes no server compare digests.
var noDigests = edit{applyMirror, "d != nil && d.Comparable()", "d != nil && d.Version < 0"}

func mistakes() []mistake {
	dropped := edit{applyMirror, "res := m.Tree.Replay(", `if tx.Type == proto.OpSetData && tx.Zxid%64 == 0 {
		g.replays = append(g.replays[:0], tree.Change{Op: proto.OpCheck})
	}
	res := m.Tree.Replay(`}
	return []mistake{
		{"a transaction is dropped", []edit{dropped}, "TestKilled", "", []string{"the states differ"}},
		{"a transaction is dropped and no digest compared", []edit{dropped, noDigests}, "TestKilled", "", []string{`its change was acknowledged`}},
		{"a session is lost at the cutover", []edit{{applyMirror, "	for row := range m.Sessions.All {\n		m.events = m.changed(attachedEvent(row))\n	}\n	m.Log", `	var lost session.Session
	for row := range m.Sessions.All {
		m.events = m.changed(attachedEvent(row))
		lost.ID = max(lost.ID, row.ID)
	}
	lost, _ = m.Sessions.Get(lost.ID)
	m.Rows ^= rowDigest(lost)
	m.Sessions.Remove(lost.ID)
	m.Log`}}, "TestKilled", "", []string{"sessions have expired within", "is in /gone"}},
		{"a write is passed on twice", []edit{{"internal/takeover/serve.go", "	err := conn.Request(r)\n", "	err := conn.Request(r)\n	if r.Op == proto.OpSetData {\n		_ = conn.Request(r)\n	}\n"}},
			"TestKilled", "", []string{"the version is"}},
		{"the newest transaction is not proved", []edit{{cutoverFile, "	if o.LastZxid != 0 {\n", "	if o.LastZxid == 0 {\n		_, _, zxid := n.Mirroring().State()\n		return zxid, nil\n	}\n	if o.LastZxid != 0 {\n"}},
			"TestKilled", "1", []string{"was acknowledged", "writes were acknowledged", "the clients' work to go on"}},
		{"one old server stays open", []edit{{cutoverFile, "Run(ctx, m.old.Servers)", "Run(ctx, m.old.Servers[1:])"}, {cutoverFile, "if err := f.Closed(waiting); err != nil {", "if err := f.Closed(waiting); err != nil && waiting.Err() == nil {"}},
			"TestKilled", "", []string{"was acknowledged", "writes were acknowledged", "held twice", "the stat is"}},
		{"the time of a change is wrong and no digest compared", []edit{{applyMirror, "Time: tx.Time,", "Time: tx.Time + 1,"}, noDigests}, "TestSameState", "", []string{"want"}},
		{"the watches of a client that reconnects are dropped", []edit{{"server/watches.go", "		r.catchUp(&req)\n", ""}}, "TestKilled", "", []string{"the clients' work to go on"}},
		{"a session that ends leaves its znodes, and no digest compared", []edit{{applyMirror, "res := m.Tree.Replay(", `if tx.Type == proto.OpCloseSession {
		g.replays = append(g.replays[:0], tree.Change{Op: proto.OpCheck})
	}
	res := m.Tree.Replay(`}, noDigests}, "TestKilled", "", []string{"in /gone"}},
		{"sessions of the old servers never expire after the cutover", []edit{{applyMirror, "	for row := range m.Sessions.All {\n		m.events = m.changed(attachedEvent(row))\n	}\n	m.Log", "	m.Log"}}, "TestKilled", "", []string{`/gone`}},
	}
}

// TestPlantedFit: the texts that a mistake replaces exist.
func TestPlantedFit(t *testing.T) {
	t.Parallel()
	for _, m := range mistakes() {
		m.overlay(t, t.TempDir())
	}
}

// TestPlanted: the checks of the other tests find mistakes.
func TestPlanted(t *testing.T) {
	if !*planted {
		t.Skip("breaks zkgo on purpose, and takes a minute or two for each mistake; set -planted")
	}
	need(t)
	for _, m := range mistakes() {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			dir := t.TempDir()
			bin := filepath.Join(dir, "zkgo")
			if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", m.overlay(t, dir), "-o", bin, "github.com/zkgo/zkgo/cmd/zkgo").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+m.test+"$", "-test.v", "-rounds", fmt.Sprint(*rounds), "-seed", fmt.Sprint(*seed))
			if m.at != "" {
				cmd.Args = append(cmd.Args, "-at", m.at)
			}
			cmd.Env = append(os.Environ(), "ZKGO_BINARY="+bin)
			out, _ := cmd.CombinedOutput()
			if !m.isFound(out) {
				t.Errorf("not found:\n%s", out)
				return
			}
			t.Logf("%d failures: %q", len(regexp.MustCompile(`--- FAIL: \w+/seed`).FindAll(out, -1)), regexp.MustCompile(strings.Join(m.found, "|")).FindAll(out, 5))
		})
	}
}

// isFound reports whether a test has failed because of the mistake.
func (m *mistake) isFound(out []byte) bool {
	for _, want := range m.found {
		if strings.Contains(string(out), "--- FAIL") && regexp.MustCompile(want).Match(out) {
			return true
		}
	}
	return false
}

// overlay writes the broken files, and their list for the compiler.
func (m *mistake) overlay(t *testing.T, dir string) string {
	t.Helper()
	root := must.Get(process.Root())(t)
	texts := make(map[string]string)
	for _, e := range m.edits {
		path := filepath.Join(root, e.file)
		if texts[path] == "" {
			texts[path] = string(must.Get(os.ReadFile(path))(t))
		}
		if n := strings.Count(texts[path], e.old); n != 1 {
			t.Fatalf("%q stands in %s %d times: what was broken there has moved", e.old, path, n)
		}
		texts[path] = strings.Replace(texts[path], e.old, e.new, 1)
	}
	replace := make(map[string]string)
	for path, text := range texts {
		broken := filepath.Join(dir, fmt.Sprint(len(replace), filepath.Base(path)))
		must.Do(t, os.WriteFile(broken, []byte(text), 0o600))
		replace[path] = broken
	}
	list := filepath.Join(dir, "overlay.json")
	must.Do(t, os.WriteFile(list, must.Get(json.Marshal(map[string]any{"Replace": replace}))(t), 0o600))
	return list
}
