package gray

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRows checks that a row shows the worst of its trials, that only zkgo has
// limits, and that the page has both programs in one line.
func TestRows(t *testing.T) {
	t.Parallel()
	trial := func(took time.Duration, kind Kind, elections int) Row {
		return Row{Trials: 1, Values: []Value{{What: "no write", Took: took, Kind: kind, Limit: 5 * time.Second}, {What: "elections", Kind: Number, Count: elections}}}
	}
	mine := Row{Table: deadTable, Scenario: "a stream", Program: zkgo}
	mine.add(trial(2*time.Second, Time, 0))
	mine.add(trial(4*time.Second, Time, 1))
	if faults := mine.Faults(0); len(faults) != 0 {
		t.Errorf("faults: %q", faults)
	}
	theirs := Row{Table: deadTable, Scenario: "a stream", Program: "ZooKeeper"}
	theirs.add(trial(40*time.Second, AtLeast, 0))
	if faults := theirs.Faults(0); len(faults) != 0 {
		t.Errorf("faults of ZooKeeper: %q", faults)
	}
	old := trial(30*time.Second, Time, 0)
	old.Table, old.Scenario, old.Program = deadTable, mine.Scenario, zkgo
	page := Page([]*Report{{Program: zkgo, Rows: []Row{old}}, {Program: zkgo, Rows: []Row{mine}}, {Program: "ZooKeeper", Rows: []Row{theirs}}})
	for _, want := range []string{"|a stream|4.0/>40|1/0|\n", "Required of zkgo: ≤ 5 s. All rows meet that.\n", "## " + deadTable} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
	mine.add(trial(6*time.Second, Time, 0))
	if faults := mine.Faults(0); len(faults) != 1 || !strings.Contains(faults[0], "6.0 s, the limit is 5s") {
		t.Errorf("faults: %q", faults)
	}
	if faults := mine.Faults(2 * time.Second); len(faults) != 0 {
		t.Errorf("faults on a busy machine: %q", faults)
	}
	mine.Values[0].Strict = true
	if faults := mine.Faults(2 * time.Second); len(faults) != 1 {
		t.Errorf("faults with a strict limit: %q", faults)
	}
	mine.Values[0] = Value{What: "no write", Took: time.Second, Limit: 5 * time.Second}
	mine.Wrong = []string{"a write was lost"}
	if faults := mine.Faults(time.Hour); !slices.Equal(faults, mine.Wrong) {
		t.Errorf("faults: %q", faults)
	}
}

func TestGap(t *testing.T) {
	t.Parallel()
	at := func(all ...int) (times []time.Time) {
		for _, s := range all {
			times = append(times, time.Unix(int64(s), 0))
		}
		return times
	}
	for _, tt := range []struct {
		at       []time.Time
		from, to int
		want     time.Duration
	}{
		{nil, 10, 20, 10 * time.Second},
		{at(1, 2, 3), 10, 20, 10 * time.Second},
		{at(9, 11, 12, 19, 30), 10, 20, 7 * time.Second},
		{at(11, 12), 10, 20, 8 * time.Second},
		{at(18, 25), 10, 20, 8 * time.Second},
	} {
		if got := gap(tt.at, time.Unix(int64(tt.from), 0), time.Unix(int64(tt.to), 0)); got != tt.want {
			t.Errorf("%v from %d to %d: %v, want %v", tt.at, tt.from, tt.to, got, tt.want)
		}
	}
}
