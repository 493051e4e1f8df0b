package gray

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Report is the result of one run of one program.
type Report struct {
	Program, Version string
	Commit           string // of zkgo and this package
	Began, Ended     time.Time
	Before, After    string // load averages
	Nice             int    // niceness of the servers and the clients
	Rows             []Row
}

// NewReport begins a report.
func NewReport(program, version string) *Report {
	r := &Report{Program: program, Version: version, Began: time.Now().UTC(), Commit: "unknown", Before: loadAverage(), Nice: niceness()}
	if out, err := exec.Command("git", "describe", "--always", "--dirty").Output(); err == nil {
		r.Commit = strings.TrimSpace(string(out))
	}
	return r
}

// Finish records the end of the run.
func (r *Report) Finish() { r.Ended, r.After = time.Now().UTC(), loadAverage() }

// niceness returns the niceness of this process.
func niceness() int {
	// The system call returns 20 minus the niceness, so that it is never
	// negative.
	n, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		return 0
	}
	return 20 - n
}

// loadAverage returns the machine's load average of the last minute.
func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(b), " ")
	return one
}

// Page formats reports as Markdown. If several reports have the same scenario,
// the last one counts.
func Page(reports []*Report) string {
	var b strings.Builder
	b.WriteString(preamble)
	var rows []Row
	for _, r := range reports {
		fmt.Fprintf(&b, "- %s (%s), %s to %s UTC, commit %s, load average before %s and after %s, nice %d, %d CPUs\n", r.Program, r.Version,
			r.Began.Format("2006-01-02 15:04"), r.Ended.Format("15:04"), r.Commit, r.Before, r.After, r.Nice, runtime.NumCPU())
		for _, row := range r.Rows {
			rows = slices.DeleteFunc(rows, func(old Row) bool { return old.Scenario == row.Scenario && old.Program == row.Program })
			rows = append(rows, row)
		}
	}
	for _, t := range []string{deadTable, largeTable, staleTable, returnTable, clientTable} {
		writeTable(&b, t, rows)
	}
	b.WriteString(explanation)
	return b.String()
}

// writeTable writes one table: a line for each scenario, with the columns of zkgo
// and then those of ZooKeeper. Scenarios of one table may have different columns:
// there is one heading for each set of columns.
func writeTable(b *strings.Builder, table string, rows []Row) {
	order := scenarios()
	var heads []string
	byHead := map[string][]string{}
	of := map[[2]string]Row{}
	for _, row := range rows {
		if row.Table != table {
			continue
		}
		head := row.head()
		if !slices.Contains(heads, head) {
			heads = append(heads, head)
		}
		if !slices.Contains(byHead[head], row.Scenario) {
			byHead[head] = append(byHead[head], row.Scenario)
		}
		of[[2]string{row.Scenario, row.Program}] = row
	}
	if len(heads) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n", table)
	for _, head := range heads {
		columns := strings.Split(head, "|")
		fmt.Fprintf(b, "\n| | zkgo: %s | ZooKeeper: %s | required of zkgo |\n|---|%s---|\n", strings.Join(columns, " | "), strings.Join(columns, " | "),
			strings.Repeat("--:|", 2*len(columns)))
		slices.SortStableFunc(byHead[head], func(x, y string) int { return cmp.Compare(slices.Index(order, x), slices.Index(order, y)) })
		for _, name := range byHead[head] {
			mine, theirs := of[[2]string{name, zkgo}], of[[2]string{name, "ZooKeeper"}]
			fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, mine.cells(len(columns)), theirs.cells(len(columns)), mine.verdict())
		}
	}
}

// scenarios returns the names of all scenarios, in the order of the tables.
func scenarios() (names []string) {
	for _, f := range deadFaults(false) {
		names = append(names, f.name)
	}
	for _, c := range largeCases() {
		names = append(names, c.name)
	}
	for _, c := range staleCases() {
		names = append(names, c.name)
	}
	for _, how := range []string{killed, cutOff} {
		for _, d := range append(awayFor(), cutFor()...) {
			names = append(names, returnName(true, how, d), returnName(false, how, d))
		}
	}
	return names
}

// head returns the names of the row's columns.
func (r Row) head() string {
	var all []string
	for _, v := range r.Values {
		all = append(all, v.What)
	}
	return strings.Join(all, "|")
}

func (r Row) cells(n int) string {
	cells := make([]string, n)
	for i := range cells {
		cells[i] = "–"
		if i < len(r.Values) {
			cells[i] = r.Values[i].String()
		}
	}
	return strings.Join(cells, " | ")
}

// verdict returns the row's limits, and whether the row meets them.
func (r Row) verdict() string {
	var limits []string
	missed := len(r.Wrong) > 0
	for _, v := range r.Values {
		limit := ""
		switch {
		case v.Kind == Number && v.Most > 0:
			limit = fmt.Sprintf("≤ %d", v.Most)
		case v.Kind != Number && v.Limit > 0:
			limit = fmt.Sprintf("≤ %g s", v.Limit.Seconds())
		}
		if limit != "" && !slices.Contains(limits, limit) {
			limits = append(limits, limit)
		}
		missed = missed || !v.within(0)
	}
	switch {
	case len(limits) == 0:
		return ""
	case missed:
		return strings.Join(limits, ", ") + ": **missed**"
	}
	return strings.Join(limits, ", ") + ": met"
}

const preamble = `# Gray networks

Written by ` + "`make gray`" + ` (tests/gray): do not edit, run it again.

What clients notice when the network between servers misbehaves without breaking. Each figure is the worst of all trials. "Over" means
that the scenario was given up. A scenario without a figure was not measured.

`

const explanation = `
## How it was measured

- Every server and the clients are in network namespaces of their own. The test process forwards their packets and drops some of them
  silently (tests/netns). A connection that is *forgotten* loses every further packet in both directions, for good; new connections work.
- Three servers with tickTime 2000, initLimit 10, syncLimit 5, unless a row says otherwise; Java with a heap of at most 512 MB and
  otherwise the options of ZooKeeper's own start script.
- At every server one client writes its own znode, answer by answer with 20 ms between, and one opens and closes sessions. Both stay at
  their server and try it again after 20 ms when a connection ends. A request is given up after two thirds of the session's timeout (10 s).
- *No write anywhere* is the longest time in which no client had a write acknowledged; *no write at a server* is the longest time for the
  client that waited longest; *no new session at a server* likewise. Each begins with the fault.
- A read is as old as the first newer value that had been acknowledged when the read was *sent*. That is less than its true age. The rate
  of a slow link is that of one direction, from the leader to one follower, with a queue of half a second. The clock's writer writes 1.1 kB
  about a hundred times a second.
- *Any single connection*: one after the other. *Any two*: ten pairs. The rows of the first table are about one ensemble, as long as it
  comes back: connections that a row has forgotten and that no server has replaced are still there, and dead, in the next. ZooKeeper does
  not replace a dead connection between election ports, so its later rows show that too.
- A server that was killed is started again after the time given; a server that was *cut off* loses every packet from and to the other
  servers. Times begin with the start of the process, or when the network heals.
- Sessions at five servers move as those of ZooKeeper's client do: they ping after a third of their timeout, give a silent server up after
  two thirds, wait at most a fifth of it for a connection, and pause for up to a second between servers.
`
