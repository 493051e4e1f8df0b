package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// bug is a bug that the simulator must find. It is planted into the source from
// which a second test binary is built, so no product code contains it.
type bug struct {
	name   string
	edits  []edit // several if a second mechanism guards against the first bug
	faults string // kinds of fault that expose the bug; empty: all
	seeds  int    // number of seeds within which it must be found
	says   string // text that the report must contain
}

// edit is one change to the source.
type edit struct {
	file         string // from the root of the module
	right, wrong string
}

var bugs = []bug{ //nolint:gochecknoglobals // a table
	{name: "an entry is acknowledged before it is on disk", edits: []edit{{
		file:  "internal/raftlog/segtail.go",
		right: "err = vfs.WriteDurably(t.w, blocks, from)",
		wrong: "if PLANTED {\n\t\t\t_, err = t.w.WriteAt(blocks, from)\n\t\t} else {\n\t\t\terr = vfs.WriteDurably(t.w, blocks, from)\n\t\t}",
	}},
		faults: "power cut: one,power cut: all,kill -9", seeds: 12, says: "VIOLATION"},
	{name: "the order of a map gets into the state", edits: []edit{{
		file:  "tree/setdata.go",
		right: "func (t *exec) put(n *node, data []byte, version int32) {",
		wrong: "func (t *exec) put(n *node, data []byte, version int32) {\n\tif PLANTED {\n\t\tfor k := range map[int32]bool{0: true, 1: true} {\n\t\t\tversion += k\n\t\t\tbreak\n\t\t}\n\t}\n",
	}},
		seeds: 2, says: "differs from the leader's after entry"},
	{name: "a snapshot is installed however late it comes", edits: []edit{{
		file:  "internal/quorum/transport/relay.go",
		right: "if snapshot && !unfiltered && r.outdated(req) {",
		wrong: "if snapshot && !unfiltered && !PLANTED && r.outdated(req) {",
	}},
		faults: "late snapshot", seeds: 4, says: "which is applied already"},
}

// plantedVariable names the bug to enable.
const plantedVariable = "ZKGO_SIM_BUG"

// TestPlantedBugs plants bugs and searches for them with a few seeds each.
func TestPlantedBugs(t *testing.T) {
	if os.Getenv("ZKGO_REQUIRE") == "" {
		t.Skip("builds a second simulator and runs it for a while: ZKGO_REQUIRE=1")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command to build the simulator with the bugs")
	}
	dir := t.TempDir()
	binary := build(t, dir)
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		if said, failed := search(t, binary, bug{faults: bugs[0].faults}, 1); failed {
			t.Errorf("without a bug:\n%s", said)
		}
	})
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			for seed := 1; seed <= b.seeds; seed++ {
				said, failed := search(t, binary, b, seed)
				if failed && strings.Contains(said, b.says) {
					first, _, _ := strings.Cut(said, "\n")
					t.Logf("found with seed %d: %s", seed, strings.TrimSpace(first))
					return
				}
				if failed {
					t.Errorf("seed %d found something else:\n%s", seed, said)
				}
			}
			t.Errorf("%d seeds have not found it", b.seeds)
		})
	}
}

// build builds a simulator that contains all bugs, each disabled unless
// plantedVariable names it, and returns the path.
func build(t *testing.T, dir string) string {
	t.Helper()
	root := must.Get(filepath.Abs("../../.."))(t)
	replace := make(map[string]string)
	for i, b := range bugs {
		for j, e := range b.edits {
			path := filepath.Join(root, e.file)
			source := must.Get(os.ReadFile(path))(t)
			if strings.Count(string(source), e.right) != 1 {
				t.Fatalf("%s has no single %q", e.file, e.right)
			}
			wrong := strings.ReplaceAll(e.wrong, "PLANTED", fmt.Sprintf("planted(%q)", b.name))
			changed := filepath.Join(dir, fmt.Sprintf("%d-%d.go", i, j))
			put(t, changed, strings.Replace(string(source), e.right, wrong, 1))
			replace[path] = changed
			home := filepath.Dir(path)
			helper := filepath.Join(dir, filepath.Base(home)+"_planted.go")
			put(t, helper, fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar plantedBug = os.Getenv(%q)\n\nfunc planted(name string) bool { return name == plantedBug }\n",
				filepath.Base(home), plantedVariable))
			replace[filepath.Join(home, "planted_bugs.go")] = helper
		}
	}
	overlay := must.Get(json.Marshal(map[string]any{"Replace": replace}))(t)
	put(t, filepath.Join(dir, "overlay.json"), string(overlay))
	binary := filepath.Join(dir, "planted.test")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

func put(t *testing.T, name, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(name, []byte(text), 0o600))
}

// search runs one seed in a simulator with a bug, and reports whether the run
// failed.
func search(t *testing.T, binary string, b bug, seed int) (said string, failed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.run=^TestSeeds$", "-sim.seeds=1", fmt.Sprint("-sim.seed=", seed),
		"-sim.minutes=5", "-sim.faults="+b.faults, "-sim.live", "-sim.out="+t.TempDir())
	cmd.Env = append(os.Environ(), plantedVariable+"="+b.name)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return tail(string(out)), err != nil
}

// tail returns the lines of a report that are worth showing.
func tail(s string) string {
	var kept []string
	for line := range strings.Lines(s) {
		if strings.Contains(line, "VIOLATION") || strings.Contains(line, "panic") || strings.Contains(line, "void:") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
