package lockbench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/perf/lockbench/load"
)

func sample() *Report {
	turn := func(n int, p50 float64) load.Result {
		return load.Result{Acquisitions: n, Seconds: 1, HandOffs: n, HandOff50: p50}
	}
	return &Report{
		Rows: []*Row{{Service: "zkgo-3", Kind: "mutex", Label: "`lock.Mutex`", Durable: "fsynced by 2 of 3",
			Own:    []load.Result{turn(4100, 0), turn(1, 0), turn(9999, 0)},
			Shared: []load.Result{turn(900, 7000)}, Worked: []load.Result{turn(30, 1250)}}},
		Failovers: []Timeline{{Name: "zkgo", Events: []Event{{1.5, "A", "Release"}}}},
		Crowds:    []Crowd{{"zkgo-1", "mutex", "the place before", 1000, 5, 8, 1250}},
	}
}

func TestWriteInto(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "page.md")
	page := "before\n<!-- lockbench-figures: begin -->\nstale\n<!-- lockbench-figures: end -->\nmiddle\n<!-- lockbench-failover: begin -->\nstale\n<!-- lockbench-failover: end -->\n"
	must.Do(t, os.WriteFile(path, []byte(page), 0o600))
	for range 2 { // the second call changes nothing
		must.Do(t, sample().WriteInto(path))
	}
	b := must.Get(os.ReadFile(path))(t)
	got := string(b)
	for _, want := range []string{
		"before\n<!-- lockbench-figures: begin -->", "|zkgo × 3|`lock.Mutex`|fsynced by 2 of 3|4,100|900|100%|–|1.25|–|",
		"while 1,000 wait", "  1.500 s  A         Release",
	} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, got)
		}
	}
	if strings.Contains(got, "stale") {
		t.Errorf("not replaced:\n%s", got)
	}
}

func TestWriteIntoNeedsItsMarkers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "page.md")
	must.Do(t, os.WriteFile(path, []byte("nothing"), 0o600))
	if err := sample().WriteInto(path); err == nil {
		t.Error("a page without markers was written")
	}
}

func TestBesideZooKeeper(t *testing.T) {
	t.Parallel()
	r := sample()
	if strings.Contains(r.Tables(), "÷") || strings.Contains(r.Tables(), "Other work") {
		t.Errorf("a comparison with nothing:\n%s", r.Tables())
	}
	theirs := *r.Rows[0]
	theirs.Service, theirs.Own, theirs.Worked = "zookeeper-3", nil, []load.Result{{HandOff50: 2000}}
	theirs.Own = []load.Result{{Acquisitions: 1000, Seconds: 1}}
	r.Rows = append(r.Rows, &theirs)
	r.LoadBefore, r.CPUs = "3.10", 2
	for _, want := range []string{"|3|4.10|≥ 2: met|1.00|0.62|≤ 0.5: **missed**|\n\n", "**Other work shared the machine"} {
		if !strings.Contains(r.Tables(), want) {
			t.Errorf("%q is not there:\n%s", want, r.Tables())
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	r := sample()
	if f := r.Faults(); len(f) != 0 {
		t.Errorf("faults: %q", f)
	}
	r.Rows[0].Worked[0].Overlaps = 1
	r.Failovers[0].Both = true
	if f := r.Faults(); len(f) != 2 {
		t.Errorf("faults: %q", f)
	}
}
