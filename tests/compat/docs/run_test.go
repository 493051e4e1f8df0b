package docs

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// step describes a special command. Other commands run on zk1 as they are, and have to end with
// exit code 0.
type step struct {
	why    string                   // it can't run in a test
	before func(*world, *testing.T) // prepares for it, also if it can't run
	run    string                   // runs instead: the same without the fixed or the unbounded
	do     func(*world, *testing.T) // runs instead
	needs  string                   // a tool
	until  string                   // it doesn't end by itself; runs until it prints this
}

// TestCommandsRun runs the commands of the pages.
func TestCommandsRun(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts ensembles")
	}
	all := pages(t)
	var config string
	for _, p := range all {
		if p.name == sample {
			config = p.configs[0]
		}
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash")
	}
	known := map[string]bool{}
	for _, p := range all {
		for _, command := range p.commands {
			known[p.name+": "+command] = true
		}
		if len(p.commands) == 0 {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, append(p.configs, config)[0])
			if start := starts[p.name]; start != nil {
				start(w, t)
			}
			for _, command := range p.commands {
				t.Run(command, func(t *testing.T) { w.step(t, command, steps[p.name+": "+command]) })
			}
		})
	}
	for key := range steps {
		if !known[key] {
			t.Errorf("no page shows %s", key)
		}
	}
}

// step runs a command of a page.
func (w *world) step(t *testing.T, command string, s step) {
	t.Helper()
	if s.before != nil {
		s.before(w, t)
	}
	if _, err := exec.LookPath(s.needs); s.needs != "" && err != nil {
		if os.Getenv("ZKGO_REQUIRE") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if s.run != "" {
		command = s.run
	}
	switch {
	case s.why != "":
	case s.do != nil:
		s.do(w, t)
	case s.until != "":
		w.until(t, command, s.until)
	default:
		if out, code := w.run(t, 1, command); code != 0 {
			t.Errorf("exit code %d\n%s", code, strings.TrimSpace(out))
		}
	}
}
