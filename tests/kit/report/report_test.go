package report_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/report"
)

type run struct{ Seed int }

// TestRecord: runs that several goroutines append are read again, each once, and a
// truncated line is not a run.
func TestRecord(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "runs.jsonl")
	const runs = 50
	var wg sync.WaitGroup
	for seed := range runs {
		wg.Go(func() {
			if err := report.Append(name, run{seed}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := must.Get(report.ReadFile[run](name))(t)
	seen := map[int]bool{}
	for _, r := range got {
		seen[r.Seed] = true
	}
	if len(got) != runs || len(seen) != runs {
		t.Errorf("%d runs, %d different ones", len(got), len(seen))
	}
	if _, err := report.Read[run](strings.NewReader("{\"Seed\":1}\n{\"Se")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a truncated line: %v", err)
	}
}

// TestReplace replaces the text between the markers of one name, and nothing else.
func TestReplace(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "page.md")
	const text = "before\n<!-- a: begin -->\nstale\n<!-- a: end -->\nmiddle\n<!-- b: begin -->\nstale\n<!-- b: end -->\n"
	must.Do(t, os.WriteFile(page, []byte(text), 0o600))
	for name, with := range map[string]string{"a": "first\n", "b": "second\n"} {
		must.Do(t, report.Replace(page, name, with))
	}
	got, err := os.ReadFile(page)
	want := strings.Replace(strings.Replace(text, "stale", "first", 1), "stale", "second", 1)
	if err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	if err := report.Replace(page, "c", "x"); err == nil || !strings.Contains(err.Error(), "<!-- c: begin -->") {
		t.Errorf("without markers: %v", err)
	}
}

// TestFrame: the JSON of a run should contain when, where and with which commit it was
// made.
func TestFrame(t *testing.T) {
	t.Parallel()
	f := report.Begin()
	f.Finish()
	if f.Machine == "" || f.CPUs == 0 || f.LoadAfter == "" || f.Took < 0 || !strings.Contains(f.String(), f.Commit) {
		t.Errorf("%+v", f)
	}
	dir := filepath.Join(t.TempDir(), "results")
	date := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	must.Do(t, report.WriteJSON(dir, "locks", date, f))
	b, err := os.ReadFile(filepath.Join(dir, "locks-2026-11-27.json"))
	var got report.Frame
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	if err != nil || got.Commit != f.Commit || !got.Date.Equal(f.Date) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := report.WriteJSON("", "locks", date, f); err != nil {
		t.Error(err)
	}
}
