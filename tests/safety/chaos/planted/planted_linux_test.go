package planted

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/checkers"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/safety/chaos"
)

// These flags are for make chaos-planted.
var ( //nolint:gochecknoglobals // flags
	duration = flag.Duration("duration", 0, "how long each broken server is tormented; 0 skips the test")
	seed     = flag.Uint64("seed", 1, "of faults and load")
)

// bug is one broken mechanism.
type bug struct {
	name     string
	in       string // the directory of the file, or its module
	file     string
	old, new string // the original text, which occurs once, and its replacement
	faults   []string
	// found lists the checkers; one must see the bug.
	found []string
}

func bugs() []bug {
	return []bug{
		{"servers that are cut off go on answering", "../../../../server", "liveness.go",
			"return ct.freshWithin(ct.bounds.Reply(timeout)) && cs.signs.Alive(timeout, cs.c.s.clock(), ct.inTouch.Load())", "return ct.gated && timeout >= 0",
			[]string{"minority", "isolate-leader"}, []string{"locks"}},
		{"the leader alone is a majority", "github.com/hashicorp/raft", "commitment.go",
			"matched[(len(matched)-1)/2]", "matched[len(matched)-1]",
			[]string{"isolate-leader", "mute-leader"}, []string{"facts", "registers", "replicas"}},
		{"some watches are not fired", "../../../../server", "watches.go",
			"e := &events[i]\n", "e := &events[i]\n\t\tif e.Zxid%64 == 0 {\n\t\t\tcontinue\n\t\t}\n",
			[]string{"kill-leader", "clients-bad"}, []string{"watches"}},
		{"linearizable reads are not confirmed by a quorum", "../../../../raftfsm/internal/ensemble", "barrier.go",
			"if !f.awaitQuorum(ctx, asked) {", "if asked.trans == nil {",
			[]string{"nap-leader"}, []string{"realtime", "registers"}},
		// These faults don't affect the leader: a new leader gives every session
		// its whole timeout.
		{"servers do not report whose clients ping", "../../../../raftfsm/internal/ensemble", "liveness.go",
			"buf = f.AppendLive(f.env.Live(buf[:0]))", "_ = f.env.Live(nil)\n\tbuf = f.AppendLive(buf[:0])",
			[]string{"slow-links"}, []string{"expiry"}},
	}
}

// TestPlantedBugsFit: the texts that the bugs replace should still be in our files.
func TestPlantedBugsFit(t *testing.T) {
	t.Parallel()
	for _, b := range bugs() {
		if strings.HasPrefix(b.in, ".") {
			b.patch(t, filepath.Join(b.in, b.file), filepath.Join(t.TempDir(), b.file))
		}
	}
}

func TestPlantedBugsAreFound(t *testing.T) {
	if *duration == 0 {
		t.Skip("runs broken servers for a minute each: make chaos-planted")
	}
	for _, b := range bugs() {
		t.Run(strings.ReplaceAll(b.name, " ", "-"), func(t *testing.T) {
			dir := t.TempDir()
			report, err := chaos.Run(chaos.Config{Duration: *duration, Promise: b.faults, Options: chaos.Options{
				Bin: b.build(t, dir), Dir: dir, Servers: 3, Store: "wal", SnapCount: 2000, Seed: *seed}})
			v := checkers.Check(report.History, checkers.Options{Search: 20 * time.Second, Most: 1})
			t.Logf("%v; %v\n%v", report, err, v)
			found := v.Violated()
			if !slices.ContainsFunc(b.found, func(name string) bool { return slices.Contains(found, name) }) {
				t.Errorf("violated are %q, want one of %q", found, b.found)
			}
		})
	}
}

// build builds zkgo with the bug.
func (b *bug) build(t *testing.T, dir string) string {
	t.Helper()
	bin := filepath.Join(dir, "zkgo")
	args := []string{"build", "-o", bin}
	if strings.HasPrefix(b.in, ".") {
		args = append(args, "-overlay", b.overlay(t, dir))
	} else {
		args = append(args, "-modfile", b.module(t, dir))
	}
	run(t, "go", append(args, "github.com/zkgo/zkgo/cmd/zkgo")...)
	return bin
}

// overlay makes the compiler read another file in place of one of ours.
func (b *bug) overlay(t *testing.T, dir string) string {
	t.Helper()
	path := must.Get(filepath.Abs(filepath.Join(b.in, b.file)))(t)
	broken := filepath.Join(dir, b.file)
	b.patch(t, path, broken)
	overlay := must.Get(json.Marshal(map[string]map[string]string{"Replace": {path: broken}}))(t)
	list := filepath.Join(dir, "overlay.json")
	must.Do(t, os.WriteFile(list, overlay, 0o600))
	return list
}

// module replaces a module with a broken copy, which an overlay cannot do.
func (b *bug) module(t *testing.T, dir string) string {
	t.Helper()
	original := strings.TrimSpace(run(t, "go", "list", "-m", "-f", "{{.Dir}}", b.in))
	replica, list := filepath.Join(dir, "module"), filepath.Join(dir, "broken.mod")
	must.Do(t, os.CopyFS(replica, os.DirFS(original)))
	b.patch(t, filepath.Join(original, b.file), filepath.Join(replica, b.file))
	mod := must.Get(os.ReadFile("../../../../go.mod"))(t)
	must.Do(t, os.WriteFile(list, fmt.Appendf(mod, "\nreplace %s => %s\n", b.in, replica), 0o600))
	sum := must.Get(os.ReadFile("../../../../go.sum"))(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "broken.sum"), sum, 0o600))
	return list
}

// patch writes the broken file.
func (b *bug) patch(t *testing.T, from, to string) {
	t.Helper()
	text := must.Get(os.ReadFile(from))(t)
	if n := strings.Count(string(text), b.old); n != 1 {
		t.Fatalf("%q stands in %s %d times: what was broken there has moved", b.old, from, n)
	}
	_ = os.Remove(to) // the copy of a read-only file
	must.Do(t, os.WriteFile(to, []byte(strings.Replace(string(text), b.old, b.new, 1)), 0o600))
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}
