package arch

import "testing"

const (
	maxFileLines = 800
	maxFuncLines = 120
)

func TestNothingGrowsTooLarge(t *testing.T) {
	t.Parallel()
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		if f.lines > maxFileLines {
			t.Errorf("%s has %d lines, more than %d: it has more than one subject", f.path, f.lines, maxFileLines)
		}
		for name, n := range f.funcs {
			if n > maxFuncLines {
				t.Errorf("%s: %s has %d lines, more than %d", f.path, name, n, maxFuncLines)
			}
		}
	}
}

func TestNoInitFunctions(t *testing.T) {
	t.Parallel()
	for _, f := range sources(t) {
		if _, ok := f.funcs["init"]; ok {
			t.Errorf("%s has an init function: state that nobody asked for", f.path)
		}
	}
}

// TestNoSleepingTests: a test that sleeps is slow on a fast machine and wrong on a slow
// one. tests/kit/wait waits for a condition. We allow it in fake time, where sleeping is
// how time passes: in files that make a bubble, and in packages that use a helper to make
// one.
func TestNoSleepingTests(t *testing.T) {
	t.Parallel()
	files := sources(t)
	bubbles := map[string]bool{}
	for _, f := range files {
		bubbles[f.pkg] = bubbles[f.pkg] || f.test && f.bubble
	}
	for _, f := range files {
		if !f.test || f.synctest || bubbles[f.pkg] {
			continue
		}
		for name := range f.sleeps {
			t.Errorf("%s: %s sleeps", f.path, name)
		}
	}
}
