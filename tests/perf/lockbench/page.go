package lockbench

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/tests/kit/report"
	"github.com/zkgo/zkgo/tests/perf/lockbench/load"
)

// Tables returns the figures in Markdown.
func (r *Report) Tables() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\n", &r.Frame)
	if r.Small {
		b.WriteString("**A brief run: it shows that this works and measures nothing.**\n\n")
	}
	if r.busy() {
		b.WriteString("**Other work shared the machine: these figures stand in for ones from a quiet machine.**\n\n")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Skipped)) {
		fmt.Fprintf(&b, "Left out: %s (%s).\n\n", name, strings.Join(strings.Fields(r.Skipped[name]), " "))
	}
	r.competition(&b)
	r.beside(&b)
	r.crowdTable(&b)
	return b.String()
}

// competition writes the table of eight clients.
func (r *Report) competition(b *strings.Builder) {
	b.WriteString("|servers|lock|an acquired lock is|own locks/s|one lock/s|handed to another|longest wait, ms|hand-off p50, ms|p99, ms|\n" +
		"|---|---|---|--:|--:|--:|--:|--:|--:|\n")
	for _, row := range r.Rows {
		handed := median(row.Shared, func(l load.Result) float64 { return 100 * float64(l.HandOffs) / float64(max(l.Acquisitions, 1)) })
		fmt.Fprintf(b, "|%s|%s|%s|%s|%s|%.0f%%|%s|%s|%s|\n", readable(row.Service), row.Label, row.Durable,
			count(median(row.Own, perSecond)), count(median(row.Shared, perSecond)), handed,
			ms(median(row.Shared, waitMax)), ms(median(row.Worked, handOff50)), ms(median(row.Worked, handOff99)))
	}
	b.WriteString("\n")
}

// busy reports whether other programs used the processors when the run began.
func (r *Report) busy() bool {
	load, err := strconv.ParseFloat(r.LoadBefore, 64)
	return err == nil && load > float64(r.CPUs)/2
}

// The targets, relative to the same client on ZooKeeper.
const (
	ownAim     = 2   // minimum ratio of own locks/s
	handOffAim = 0.5 // maximum ratio of hand-off times
)

// beside writes the table that compares zkgo's mutex with ZooKeeper's.
func (r *Report) beside(b *strings.Builder) {
	head := "`lock.Mutex`, zkgo ÷ ZooKeeper:\n\n|servers|own locks/s|aim|one lock/s|hand-off p50|aim|\n|--:|--:|---|--:|--:|---|\n"
	for _, n := range []string{"1", "3"} {
		ours, theirs := r.find("zkgo-"+n+"/mutex"), r.find("zookeeper-"+n+"/mutex")
		if ours == nil || theirs == nil {
			continue
		}
		ratio := func(turns func(*Row) []load.Result, f func(load.Result) float64) float64 {
			return median(turns(ours), f) / max(median(turns(theirs), f), 1e-9)
		}
		own := ratio(func(row *Row) []load.Result { return row.Own }, perSecond)
		shared := ratio(func(row *Row) []load.Result { return row.Shared }, perSecond)
		handOff := ratio(func(row *Row) []load.Result { return row.Worked }, handOff50)
		fmt.Fprintf(b, "%s|%s|%.2f|≥ %d: %s|%.2f|%.2f|≤ %.1f: %s|\n", head, n, own, ownAim, met(own >= ownAim), shared, handOff, handOffAim, met(handOff <= handOffAim))
		head = ""
	}
	if head == "" {
		b.WriteString("\n")
	}
}

func met(yes bool) string {
	if yes {
		return "met"
	}
	return "**missed**"
}

func handOff50(l load.Result) float64 { return l.HandOff50 }
func handOff99(l load.Result) float64 { return l.HandOff99 }
func waitMax(l load.Result) float64   { return l.WaitMax }

// crowdTable writes the table of a release's packets.
func (r *Report) crowdTable(b *strings.Builder) {
	if len(r.Crowds) == 0 {
		return
	}
	fmt.Fprintf(b, "One release while %s wait, counted by the server:\n\n|servers|they watch|packets received and sent|until the next one holds it, ms|\n|---|---|--:|--:|\n",
		count(float64(r.Crowds[0].Waiters)))
	for _, c := range r.Crowds {
		fmt.Fprintf(b, "|%s|%s|%s|%s|\n", readable(c.Service), c.Label, count(c.Packets), ms(c.HandOff))
	}
	b.WriteString("\n")
}

// readable returns a readable name of a service: "zkgo-3" is "zkgo, 3 servers".
func readable(service string) string {
	parts := strings.Split(service, "-")
	name := map[string]string{"zkgo": "zkgo", "zookeeper": "ZooKeeper", "etcd": "etcd", "redis": "Redis"}[parts[0]]
	if parts[1] != "1" {
		name += " × " + parts[1]
	}
	if len(parts) > 2 {
		name += ", appendfsync " + parts[2]
	}
	return name
}

// count formats a number with thousands separators.
func count(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	if len(s) > 3 {
		s = s[:len(s)-3] + "," + s[len(s)-3:]
	}
	return s
}

// ms formats microseconds as milliseconds, without the unit.
func ms(micros float64) string {
	switch v := micros / 1000; {
	case v == 0:
		return "–"
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

// WriteInto puts the report into a page: its tables and the failovers between their
// markers.
func (r *Report) WriteInto(page string) error {
	err := report.Replace(page, "lockbench-figures", "\n"+r.Tables())
	if err == nil && len(r.Failovers) > 0 {
		err = report.Replace(page, "lockbench-failover", "\n"+r.failovers())
	}
	return err
}
