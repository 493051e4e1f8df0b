package gray

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/zkgo/zkgo/tests/kit/report"
)

// Report is the result of one run of one program.
type Report struct {
	report.Frame
	Program, Version string
	Nice             int // niceness of the servers and the clients
	Rows             []Row
}

// NewReport begins a report.
func NewReport(program, version string) *Report {
	return &Report{Frame: report.Begin(), Program: program, Version: version, Nice: niceness()}
}

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

// Page formats reports as Markdown. If several reports have the same scenario,
// the last one counts.
func Page(reports []*Report) string {
	var b strings.Builder
	b.WriteString(preamble)
	var rows []Row
	for _, r := range reports {
		fmt.Fprintf(&b, "- %s: %s, nice %d\n", r.Version, &r.Frame, r.Nice)
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

// writeTable writes one table: a line for each scenario, with zkgo's columns and then ZooKeeper's.
// Scenarios of one table may have different columns: there is one heading for each set of columns.
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
		fmt.Fprintf(b, "\n||%s|\n|---|%s\n", strings.Join(columns, "|"), strings.Repeat("--:|", len(columns)))
		slices.SortStableFunc(byHead[head], func(x, y string) int { return cmp.Compare(slices.Index(order, x), slices.Index(order, y)) })
		var limits, missed []string
		counts := map[string]int{}
		for _, name := range byHead[head] {
			mine, theirs := of[[2]string{name, zkgo}], of[[2]string{name, "ZooKeeper"}]
			fmt.Fprintf(b, "|%s|%s|\n", name, bothCells(mine, theirs, len(columns)))
			limit, met := mine.verdict()
			if counts[limit]++; limit != "" && counts[limit] == 1 {
				limits = append(limits, limit)
			}
			if !met {
				missed = append(missed, name)
			}
		}
		if len(limits) > 1 {
			for i, limit := range limits {
				limits[i] = fmt.Sprintf("%s (%d rows)", limit, counts[limit])
			}
		}
		writeVerdict(b, limits, missed)
	}
}

// writeVerdict writes the limits of a table, and which rows exceed them.
func writeVerdict(b *strings.Builder, limits, missed []string) {
	if len(limits) == 0 {
		return
	}
	fmt.Fprintf(b, "\nRequired of zkgo: %s. ", strings.Join(limits, "; "))
	if len(missed) == 0 {
		b.WriteString("All rows meet that.\n")
		return
	}
	fmt.Fprintf(b, "**Missed** by: %s.\n", strings.Join(missed, "; "))
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

// bothCells returns the cells of a line: in each the values of both programs.
func bothCells(mine, theirs Row, n int) string {
	cells := make([]string, n)
	for i := range cells {
		cells[i] = mine.cell(i) + "/" + theirs.cell(i)
	}
	return strings.Join(cells, "|")
}

func (r Row) cell(i int) string {
	if i >= len(r.Values) {
		return "–"
	}
	return r.Values[i].seconds()
}

// seconds returns the value without its unit, which is seconds unless it is a count.
func (v Value) seconds() string {
	switch {
	case v.Kind == Number:
		return fmt.Sprint(v.Count)
	case v.Kind == AtLeast:
		return fmt.Sprintf(">%.0f", v.Took.Seconds())
	case v.Took < 100*time.Millisecond:
		return fmt.Sprintf("%.2f", v.Took.Seconds())
	}
	return fmt.Sprintf("%.1f", v.Took.Seconds())
}

// verdict returns the row's limits, and whether the row meets them.
func (r Row) verdict() (limit string, met bool) {
	var limits, named []string
	met = len(r.Wrong) == 0
	for _, v := range r.Values {
		limit := ""
		switch {
		case v.Kind == Number && v.Most > 0:
			limit = fmt.Sprintf("≤ %d", v.Most)
		case v.Kind != Number && v.Limit > 0:
			limit = fmt.Sprintf("≤ %g s", v.Limit.Seconds())
		}
		if limit != "" {
			limits, named = append(limits, limit), append(named, v.What+" "+limit)
		}
		met = met && v.within(0)
	}
	if len(limits) > 0 && len(slices.Compact(slices.Clone(limits))) == 1 {
		return limits[0], met
	}
	return strings.Join(named, ", "), met
}

const preamble = `# Gray networks

Written by ` + "`make gray`" + ` (tests/safety/gray; half an hour, as root): do not edit, run it again.

What clients notice when the network between servers misbehaves without breaking. Each cell is zkgo/ZooKeeper, the worst of all trials,
times in seconds. >40 means that the scenario was given up then, – that it was not measured.

`

const explanation = `
## How it was measured

- Every server and the clients are in network namespaces. The test forwards their packets and drops some silently (tests/kit/netns). A
  connection that is *forgotten* loses every further packet in both directions; new connections work.
- Three servers with tickTime 2000, initLimit 10, syncLimit 5, unless a row says otherwise. Sessions have a timeout of 10 s.
- At every server one client writes its own znode, and one opens and closes sessions. *No write anywhere* is the longest time without an
  acknowledged write; *no write at a server* that of the client that waited longest; *no new session at a server* likewise.
- A read is as old as the first newer value that was acknowledged when the read was *sent*; it may be older.
- The rows of the first table share one ensemble while it recovers, so connections that a server did not replace stay dead.
- A killed server is started again after the time given; one that was *cut off* loses every packet from and to the other servers. Times
  begin with the start of the process, or when the network heals.
`
