package failover

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// row is one line of the table: its description and how to extract it from a result.
type row struct {
	what     string
	scenario string
	unit     string
	samples  func(r *Result) []float64
	// limit is the limit for zkgo's median; 0 means none.
	limit float64
}

// each returns a function that evaluates f for every incident.
func each(f func(Incident) float64) func(*Result) []float64 {
	return func(r *Result) []float64 {
		var all []float64
		for _, in := range r.Incidents {
			all = append(all, f(in))
		}
		return all
	}
}

// value returns a function that reads the samples a scenario stored under name.
func value(name string) func(*Result) []float64 {
	return func(r *Result) []float64 { return r.Values[name] }
}

func noWrite(i Incident) float64     { return i.NoWrite }
func everyWriter(i Incident) float64 { return i.EveryWriter }
func noRead(i Incident) float64      { return i.NoRead }

// share returns part as a percentage of whole.
func share(part, whole int) float64 { return 100 * float64(part) / float64(max(whole, 1)) }

func rows() []row {
	kept := each(func(i Incident) float64 { return share(i.Kept, i.Connections) })
	readers := each(func(i Incident) float64 { return share(i.KeptReaders, i.Readers) })
	reads := each(func(i Incident) float64 { return float64(i.Reads) })
	return []row{
		{"**kill -9 of the leader**: no write acknowledged anywhere", "kill", "ms", each(noWrite), killLimit},
		{"… until every writer writes again", "kill", "ms", each(everyWriter), 0},
		{"… no read at a server that lives", "kill", "ms", each(noRead), 0},
		{"… reads there while no write was acknowledged", "kill", "", reads, 0},
		{"… connections with them that stayed open", "kill", "%", kept, 0},
		{"… of these, of clients that wrote nothing", "kill", "%", readers, 0},
		{"**leader's machine vanishes**: no write acknowledged anywhere", "vanish", "ms", each(noWrite), 0},
		{"… no read at a server that lives", "vanish", "ms", each(noRead), 0},
		{"… reads there while no write was acknowledged", "vanish", "", reads, 0},
		{"… connections of clients that wrote nothing that stayed open", "vanish", "%", readers, 0},
		{"**leader stopped by SIGTERM**: no write acknowledged anywhere", "stop", "ms", each(noWrite), stopLimit},
		{"… until every writer writes again", "stop", "ms", each(everyWriter), 0},
		{"… no read at a server that lives", "stop", "ms", each(noRead), 0},
		{"… connections of clients that wrote nothing that stayed open", "stop", "%", readers, 0},
		{"**rolling restart of all**: all times without writes over 25 ms together", "roll", "ms", value("without writes, ms"), 0},
		{"… longest time without a write", "roll", "ms", each(noWrite), 0},
		{"… the whole round", "roll", "s", value("whole round, s"), 0},
		{"**all killed at once, started again**: start to first write", "restart", "ms", value("start to first write, ms"), 0},
		{"… kill to every writer writing", "restart", "ms", each(everyWriter), 0},
		{"**four CPU hogs**: longest time without a write", "starve", "ms", each(noWrite), 0},
		{"**fifty CPU hogs**: longest time without a write", "overload", "ms", each(noWrite), 0},
		{"**disks hang for a second**, in turn and all: longest time without a write", "stall", "ms", each(noWrite), 0},
		{"**a lone write, idle ensemble**: by the leader", "idle", "ms", value("leader, ms"), 0},
		{"… by a follower", "idle", "ms", value("follower, ms"), 0},
	}
}

// Table returns the figures side by side, in Markdown.
func (r *Report) Table() string {
	var b strings.Builder
	b.WriteString("||zkgo: median|worst|ZooKeeper: median|worst|ZooKeeper ÷ zkgo|required|\n|---|--:|--:|--:|--:|--:|---|\n")
	for _, w := range rows() {
		ours, theirs := w.of(r.Of("zkgo", w.scenario)), w.of(r.Of("ZooKeeper", w.scenario))
		if ours.n+theirs.n == 0 {
			continue
		}
		ratio := ""
		if (w.unit == "ms" || w.unit == "s") && ours.median > 0 && theirs.n > 0 {
			ratio = fmt.Sprintf("%.1f", theirs.median/ours.median)
		}
		limit := ""
		if w.limit > 0 {
			limit = fmt.Sprintf("≤ %.0f: %s", w.limit, verdict(ours.n > 0 && ours.median <= w.limit))
		}
		fmt.Fprintf(&b, "|%s|%s|%s|%s|%s|\n", w.what, ours.cells(w.unit), theirs.cells(w.unit), ratio, limit)
	}
	return b.String()
}

func (w row) of(r *Result) stats {
	if r == nil {
		return stats{}
	}
	s := of(w.samples(r))
	if w.unit == "%" || w.unit == "" { // more is better, so the smallest is the worst
		for _, v := range w.samples(r) {
			s.worst = min(s.worst, v)
		}
	}
	return s
}

// cells formats the statistics as two columns of the table.
func (s stats) cells(unit string) string {
	if s.n == 0 {
		return "–|–"
	}
	return figure(s.median, unit) + "|" + figure(s.worst, unit)
}

// figure formats a figure. Times are in milliseconds.
func figure(v float64, unit string) string {
	switch {
	case unit == "s":
		return fmt.Sprintf("%.0f", 1000*v)
	case unit == "ms" && v < 10:
		return fmt.Sprintf("%.2f", v)
	case unit == "%":
		return fmt.Sprintf("%.0f%%", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func verdict(ok bool) string {
	if ok {
		return "met"
	}
	return "**missed**"
}

// harm returns the table of the faults that must never happen, summed up by program.
func (r *Report) harm() string {
	var b strings.Builder
	b.WriteString("||incidents|seconds|needless elections|lost: sessions/ephemerals/writes|other errors|connections lost|writes|reads|\n" +
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	var programs []string
	for _, res := range r.Results {
		if res.Skipped != "" {
			fmt.Fprintf(&b, "|%s, %s|not run: %s|\n", res.Scenario, res.Program, res.Skipped)
		} else if !slices.Contains(programs, res.Program) {
			programs = append(programs, res.Program)
		}
	}
	for _, program := range programs {
		r.harmOf(&b, program)
	}
	return b.String()
}

// harmOf writes the row of one program.
func (r *Report) harmOf(b *strings.Builder, program string) {
	var o Outcome
	var took float64
	incidents, elections, wrong, other, lost := 0, 0, 0, 0, 0
	for _, res := range r.Results {
		if res.Program != program || res.Skipped != "" || res.Scenario == "idle" {
			continue
		}
		incidents += len(res.Incidents)
		took += res.Took
		if res.Scenario == "starve" || res.Scenario == "overload" || res.Scenario == "stall" {
			elections += int(res.Elections)
		}
		o.SessionsLost += res.Outcome.SessionsLost
		o.EphemeralsLost += res.Outcome.EphemeralsLost
		o.Writes += res.Outcome.Writes
		o.Reads += res.Outcome.Reads
		wrong += len(res.Outcome.Wrong)
		for name, n := range res.Outcome.Errors {
			if name == connectionLoss {
				lost += n
			} else {
				other += n
			}
		}
	}
	fmt.Fprintf(b, "|%s|%d|%.0f|%d|%d/%d/%d|%d|%d|%d|%d|\n", program, incidents, took, elections, o.SessionsLost, o.EphemeralsLost, wrong, other, lost, o.Writes, o.Reads)
}

// Page returns the whole report in Markdown.
func (r *Report) Page() string {
	var versions []string
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		versions = append(versions, r.Versions[name])
	}
	return fmt.Sprintf(page, &r.Frame, strings.Join(versions, "; "), r.Table(), r.harm())
}

// page is the text of the report, without its tables.
const page = `# What clients notice when servers fail

Written by ` + "`make failover`" + ` (tests/safety/failover): do not edit, run it again.

%s; %s.

Times are in milliseconds. Worst is the highest, of reads answered and connections kept the lowest.

%s
A killed process is noticed by its connections and its port within milliseconds; no timeout is involved. A silent leader is given up after
2 s if its machine accepts no connections, otherwise after 4 s ([decision 028](decisions/028-when-a-leader-is-given-up.md)). Servers that
have lost their leader keep answering reads
([how long](architecture.md#how-long-a-server-may-go-on-without-its-leader)).

%s
## How it was measured

- Three servers on one machine with ZooKeeper's sample settings (tickTime 2000, initLimit 10, syncLimit 5); the clients share its
  processors. At every server one writer and one reader work request by request, and three holders own an ephemeral znode. Sessions have a
  timeout of 10 s. A client that loses its connection tries its own server first, then the next.
- *No write acknowledged anywhere*: the longest time in which no writer got a reply. *Until every writer writes again*: the longest time one
  of them waited, including reconnecting.
- *Machine vanishes*: the process is frozen (SIGSTOP), so no connection ends and nothing is refused. Its own writer is left out.
- *CPU hogs*: shell loops with normal priority. *Disks hang*: fsync waits for one second of every two (tests/kit/lossyfs), on one server
  after the other, then on all.
- *Lost writes*: a writer is alone with its znode, so its version must rise by one for each write; writes with unknown outcome are allowed for.
`
