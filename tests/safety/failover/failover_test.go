package failover

import (
	"os"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/servers"
)

func TestMain(m *testing.M) {
	code := m.Run()
	process.Cleanup()
	os.Exit(code)
}

// TestScenarios runs every scenario against zkgo, as briefly as possible. It judges correctness, no
// durations.
func TestScenarios(t *testing.T) {
	process.Needed(t)
	t.Parallel()
	results := must.Get(Measure(servers.Zkgo(process.Binary(t)), t.TempDir(), Plan("zkgo", true), func(r Result) { t.Log(r) }))(t)
	report := Report{Results: results}
	for _, fault := range report.Faults(false) {
		t.Error(fault)
	}
	for _, r := range results {
		if r.Skipped != "" {
			t.Errorf("%s was not run: %s", r.Scenario, r.Skipped)
		}
		if r.Scenario != "idle" && r.Skipped == "" && (r.Outcome.Writes == 0 || r.Outcome.Reads == 0 || len(r.Incidents) == 0) {
			t.Errorf("%s shows nothing: %v", r.Scenario, r)
		}
	}
}

// at converts milliseconds to times.
func at(ms ...int) []time.Time {
	var times []time.Time
	for _, m := range ms {
		times = append(times, time.UnixMilli(int64(m)))
	}
	return times
}

func TestLongestGap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		times []time.Time
		began int
		want  time.Duration
	}{
		{"a gap over the beginning counts whole", at(0, 2, 50, 52), 10, 48 * time.Millisecond},
		{"one before it does not", at(0, 90, 92, 95), 91, 3 * time.Millisecond},
		{"one that ends as it begins does not", at(0, 90, 92), 90, 2 * time.Millisecond},
		{"no times, no gap", nil, 0, 0},
	} {
		if got := longest(c.times, at(c.began)[0]).length(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := total(at(0, 10, 40, 42, 100), 25*time.Millisecond); got != 88*time.Millisecond {
		t.Errorf("all long gaps together: %v", got)
	}
	if got := count(at(1, 2, 3, 4, 5), span{at(1)[0], at(4)[0]}); got != 2 {
		t.Errorf("%d within a span", got)
	}
}

// TestVersionsTell shows that a writer's version check finds lost and repeated writes.
func TestVersionsTell(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		version, before int32
		unknown         int32
		wrong           bool
	}{
		{"the next one", 8, 7, 0, false},
		{"the same again: a write was lost", 7, 7, 0, true},
		{"an older one: writes were lost", 3, 7, 2, true},
		{"one too many: a write was done twice", 9, 7, 0, true},
		{"an unknown write took place", 9, 7, 1, false},
		{"an unknown write did not", 8, 7, 1, false},
		{"an unknown write took place twice", 10, 7, 1, true},
	} {
		w := newClient(write, 0, nil, c.name)
		w.version, w.unknown, w.written = c.before, c.unknown, true
		w.note(setReply(c.version), nil)
		if got := len(w.wrong) > 0; got != c.wrong {
			t.Errorf("%s: found wrong: %v, want %v", c.name, got, c.wrong)
		}
	}
}

// TestBlamesServerOrClientForALostSession distinguishes a session that the servers lost from one that its
// client failed to keep alive.
func TestBlamesServerOrClientForALostSession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		pause time.Duration
		late  bool
	}{
		{"a client that waited for a silent server", sessionTimeout * 2 / 3, false},
		{"a client that got no time", sessionTimeout, true},
	} {
		m, now := newClient(hold, 0, nil, c.name), time.Now()
		m.awake(now.Add(-c.pause))
		m.awake(now)
		if got := !m.late.IsZero(); got != c.late {
			t.Errorf("%s: late: %v", c.name, got)
		}
	}
}

// TestFaultsAreSeen: a report should show all faults, and ZooKeeper's should not count
// against zkgo.
func TestFaultsAreSeen(t *testing.T) {
	t.Parallel()
	bad := Outcome{SessionsLost: 1, EphemeralsLost: 2, Errors: map[string]int{connectionLoss: 9, "NoNode": 3}, Wrong: []string{"version"}}
	r := Report{Results: []Result{{Program: "zkgo", Scenario: "kill", Outcome: bad, Incidents: []Incident{{NoWrite: killLimit + 1}}},
		{Program: "zkgo", Scenario: "starve", Elections: 1}, {Program: "ZooKeeper", Outcome: bad}}}
	if got := r.Faults(false); len(got) != 4 {
		t.Errorf("faults: %q", got)
	}
	if got := r.Faults(true); len(got) != 6 {
		t.Errorf("faults and times: %q", got)
	}
	if got := (Outcome{Errors: map[string]int{connectionLoss: 9}}).Faults(); len(got) != 0 {
		t.Errorf("a lost connection is no fault: %q", got)
	}
}
