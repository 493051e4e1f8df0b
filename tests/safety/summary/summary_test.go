package summary

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/checkers"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/report"
)

// TestAppendAndAddUp records runs, reads them and adds them up.
func TestAppendAndAddUp(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "runs.jsonl")
	const runs = 50
	for seed := range uint64(runs) {
		r := &Run{Suite: "chaos", Layout: "3 servers, wal", Seed: seed, Ended: time.Unix(1e9, 0), Seconds: 120, Answered: 1000, Unanswered: 3,
			Elections: 4, Faults: map[string]int{"kill-leader": 2, "wipe": 1}}
		r.Judge(&checkers.Verdict{Results: []*checkers.Result{{Checker: "registers", Counts: []checkers.Count{{What: "accesses", N: 70}}}}})
		must.Do(t, report.Append(name, r))
	}
	got := must.Get(report.ReadFile[Run](name))(t)
	all := sum(got)
	if len(got) != runs || all.Time != runs*2*time.Minute || all.Answered != runs*1000 || all.Unanswered != runs*3 || all.Elections != runs*4 ||
		all.AllFaults() != runs*3 || all.Checked["registers: accesses"] != runs*70 || all.Violations != 0 {
		t.Errorf("%d runs read, in all %+v", len(got), all)
	}
	page := text(t, got)
	for _, want := range []string{"### chaos, 2001-09-09 01:46", "| in all | 50 | 0 | 0 | 1.7 h | 50,000 | 150 | 200 | 150 | 0 |",
		"| faults | kill-leader 100, wipe 50 |", "| registers | accesses 3,500 |"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
}

// TestVoidAndFailedRuns: a void run adds nothing; a run with a violation is counted and
// reported, void or not.
func TestVoidAndFailedRuns(t *testing.T) {
	t.Parallel()
	void := &Run{Suite: "simulation", Seconds: 600, Answered: 9, Void: []string{"9 operations"}}
	broke := &Run{Suite: "simulation", Seed: 7, Seconds: 600, Answered: 100, Void: []string{"1 elections"}}
	broke.Judge(&checkers.Verdict{Results: []*checkers.Result{{Checker: "locks", Violations: []checkers.Violation{{What: "held twice\nby two"}}, More: 4,
		Undecided: []string{"a lock"}}}})
	ill := &Run{Suite: "simulation", Seconds: 60, DidNotHeal: "server 1 is gone"}
	all := sum([]*Run{void, broke, ill})
	if all.Runs != 3 || all.Void != 1 || all.Failed != 2 || all.Violations != 5 || all.Answered != 100 || all.Time != 11*time.Minute {
		t.Errorf("in all %+v", all)
	}
	page := text(t, []*Run{void, broke, ill})
	for _, want := range []string{"seed 7", "locks: held twice\n", "server 1 is gone", "Undecided", "locks: a lock"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
}

// TestHourByHour: the rows of the record, in chronological order, add up to the total.
func TestHourByHour(t *testing.T) {
	t.Parallel()
	var runs []*Run
	for i := range 7 {
		runs = append(runs, &Run{Suite: "chaos", Seed: uint64(i), Ended: time.Unix(int64(1e9+i), 0), Seconds: 1500, Answered: 1000 + i,
			Elections: 1, Faults: map[string]int{"wipe": 1, "kill-one": i}})
	}
	runs[5].Void = []string{"shows nothing"}
	runs[6].Violations = 2
	slices.Reverse(runs)
	var b bytes.Buffer
	must.Do(t, Write(&b, runs, time.Hour))
	for _, want := range []string{
		"| 0.0 to 1.2 | 3 | 0 | 0 | 3,003 | 0 | 3 | 6 | kill-one 3, wipe 3 | 0 |\n",
		"| 1.2 to 2.5 | 4 | 1 | 1 | 3,013 | 0 | 3 | 16 | kill-one 13, wipe 3 | 2 |\n",
		"| in all 2.5 | 7 | 1 | 1 | 6,016 | 0 | 6 | 22 | kill-one 16, wipe 6 | 2 |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

// TestRecords: a row for each commit, in chronological order, and the sums.
func TestRecords(t *testing.T) {
	t.Parallel()
	var old, later []*Run
	for i := range 3 {
		run := Run{Suite: "chaos", Layout: "3 servers, wal", Seed: uint64(i), Ended: time.Unix(1e9, 0), Seconds: 1500, Answered: 1000, Faults: map[string]int{"wipe": 1}}
		old = append(old, &run)
		next := run
		next.Ended, next.Faults = time.Unix(1.1e9, 0), map[string]int{"kill-one": 2}
		later = append(later, &next)
	}
	later[0].DidNotHeal = "server 1 is gone"
	var b bytes.Buffer
	must.Do(t, WriteRecords(&b, "chaos", []Record{{"bbb", later}, {"empty", nil}, {"aaa", old}}))
	for _, want := range []string{
		"## Chaos\n",
		"|aaa|09-09|1.2|3|0|0|3,000|0|0|3|0|\n|bbb|11-09|1.2|3|0|1|3,000|0|0|6|0|\n|all||2.5|6|0|1|6,000|0|0|9|0|\n",
		"2 kinds of faults. The rarest: wipe 3, kill-one 6.\n",
		"- bbb, seed 0, 3 servers, wal: server 1 is gone\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

func text(t *testing.T, runs []*Run) string {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, Write(&b, runs, 0))
	return b.String()
}
