package failover

import (
	"fmt"
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
	b.WriteString("| | zkgo: median | worst | n | ZooKeeper: median | worst | n | ZooKeeper ÷ zkgo | required |\n|---|--:|--:|--:|--:|--:|--:|--:|---|\n")
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
			limit = fmt.Sprintf("≤ %.0f ms: %s", w.limit, verdict(ours.n > 0 && ours.median <= w.limit))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", w.what, ours.cells(w.unit), theirs.cells(w.unit), ratio, limit)
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

// cells formats the statistics as three columns of the table.
func (s stats) cells(unit string) string {
	if s.n == 0 {
		return "– | – | –"
	}
	return fmt.Sprintf("%s | %s | %d", figure(s.median, unit), figure(s.worst, unit), s.n)
}

func figure(v float64, unit string) string {
	switch {
	case unit == "ms" && v < 10 || unit == "s":
		return fmt.Sprintf("%.2f %s", v, unit)
	case unit == "":
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}

func verdict(ok bool) string {
	if ok {
		return "met"
	}
	return "**missed**"
}

// harm returns the table of what must never happen, summed up by scenario.
func (r *Report) harm() string {
	var b strings.Builder
	b.WriteString("| | | seconds | elections nobody needed | sessions lost | ephemerals lost | writes lost or doubled | other errors | connections lost | writes | reads |\n" +
		"|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, res := range r.Results {
		if res.Skipped != "" {
			fmt.Fprintf(&b, "| %s | %s | not run: %s |\n", res.Scenario, res.Program, res.Skipped)
			continue
		}
		if res.Scenario == "idle" {
			continue
		}
		o := res.Outcome
		other := 0
		for name, n := range o.Errors {
			if name != connectionLoss {
				other += n
			}
		}
		elections := "–"
		if res.Scenario == "starve" || res.Scenario == "overload" || res.Scenario == "stall" {
			elections = fmt.Sprint(res.Elections)
		}
		fmt.Fprintf(&b, "| %s | %s | %.0f | %s | %d | %d | %d | %d | %d | %d | %d |\n", res.Scenario, res.Program, res.Took, elections,
			o.SessionsLost, o.EphemeralsLost, len(o.Wrong), other, o.Errors[connectionLoss], o.Writes, o.Reads)
	}
	return b.String()
}

// Page returns the whole report in Markdown.
func (r *Report) Page() string {
	var versions []string
	for _, name := range sortedKeys(r.Versions) {
		versions = append(versions, r.Versions[name])
	}
	return fmt.Sprintf(page, r.Date.Format("2006-01-02 15:04"), r.Machine, r.CPUs, r.Go, r.LoadBefore, r.LoadAfter, r.Took/60,
		r.Commit, strings.Join(versions, "; "), r.Table(), r.harm())
}

// page is the text of the report, without its tables.
const page = `# What clients notice when servers fail

Written by ` + "`make failover`" + ` (tests/failover): do not edit, run it again.

%s UTC, %s, %d CPUs, %s; load average before %s, after %s; %.1f minutes; commit %s; %s.

%s
Worst is the highest, of reads answered and connections kept the lowest.

%s
## The rules behind the figures

- A killed process is noticed by its connections and its port, within milliseconds; the other servers ask one another who leads and
  how long their logs are, and the best one stands for election. No timeout is involved.
- A leader that is silent is given up after 2 s where its machine accepts no connections either, and after 4 s where only its process is
  silent, by a majority (two fifths of syncLimit × tickTime, of which 5 s count for the former). A leader that a majority does not
  follow any more steps down after 2.5 s.
- A server that has lost its leader goes on serving a session's reads until two thirds of that session's timeout, or
  syncLimit × tickTime (10 s) if that is less, have passed since a leader that a majority followed has last acknowledged to have
  heard of its sessions. Then it closes the connection, while the session has a third of its timeout left to be taken elsewhere: nobody
  is told that he holds what another may hold already.

## How it was measured

- Three servers on one machine with ZooKeeper's sample settings (tickTime 2000, initLimit 10, syncLimit 5), data on the same disk;
  Java with the options of ZooKeeper's own start script. The same clients, in one process, at all of them; the servers and the
  clients share the processors.
- At every server one writer sets its own znode, waits for the answer and 2 ms, and sets it again; one reader reads in the same
  way; three holders own an ephemeral znode and ping ten times a second. Sessions have a timeout of 10 s. Who loses its connection
  tries its own server first, then the next, with 5 ms after each round: so servers are measured, not the patience of a client.
- *No write acknowledged anywhere* is the longest time in which none of the three writers got an answer. *Until every writer writes
  again* is the longest time one of them waited, the one whose server is gone among them. It includes connecting again.
- *A machine that vanishes* is a process that is frozen (SIGSTOP): no connection ends, nothing is refused, nothing answers. Its own
  writer, who cannot know, is left out.
- *No read* and *connections* are about servers that live. A client with a write on its way when the leader is lost has its
  connection closed: whether that write counts nobody can tell.
- *Four CPU hogs*, *fifty CPU hogs*: shell loops with the priority of everybody else. *Disks hang*: every server has its data on a file system in user
  space (tests/powerloss/lossyfs) whose fsync waits for one second of every two, on one server after the other, then on all.
  *Elections nobody needed* is by how much the epoch went up.
- *Sessions, ephemerals, writes*: every client checks its own while it runs, and at the end the ensemble is asked. *Writes lost or
  doubled*: a writer is alone with its znode, so each answer's version must be above the one before, by no more than the writes whose
  outcome is unknown.
`
