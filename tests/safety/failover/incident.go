package failover

import (
	"slices"
	"time"

	"github.com/zkgo/zkgo/tests/kit/servers"
)

// Incident is what clients noticed of one event at the servers. All times are in
// milliseconds.
type Incident struct {
	At     time.Time // for finding it in the servers' logs
	Server int       // the affected server, 0 for several
	// NoWrite is the longest time in which no client's write was acknowledged.
	NoWrite float64
	// EveryWriter is the longest time that any single writer had to wait, including
	// writers that had to find another server.
	EveryWriter float64
	// NoRead is the longest time that any reader at an unaffected server had to wait.
	NoRead float64
	// Reads is the number of reads that those servers answered during NoWrite.
	Reads int
	// Kept of the Connections to those servers stayed open. KeptReaders and Readers
	// count only the connections of clients that don't write.
	Kept, Connections, KeptReaders, Readers int
}

const (
	// settled is how many replies in a row show that a writer is served again.
	settled = 20
	// lull is the pause between incidents, in which remaining work finishes.
	lull = 200 * time.Millisecond
)

// incident makes something happen to a server and measures until all writers are served
// again. We ignore the writers of a silent victim, because they can't notice.
func (c *crowd) incident(victim *servers.Server, silent bool, happen func() error) (Incident, error) {
	var survivors, writers []*client
	before := map[*client]int{}
	for _, m := range c.clients {
		alone := victim == nil || c.addr(m) != victim.Addr
		if alone {
			survivors = append(survivors, m)
			before[m] = m.connections()
		}
		if m.task == write && (alone || !silent) {
			writers = append(writers, m)
		}
	}
	began := time.Now()
	if err := happen(); err != nil {
		return Incident{}, err
	}
	over := time.Now()
	if err := c.await(over, settled, writers); err != nil {
		return Incident{}, err
	}
	// A client that only pings has yet to notice that its connection is gone.
	if err := c.await(time.Now(), 1, survivors); err != nil {
		return Incident{}, err
	}
	in := c.assess(began, writers, survivors, before)
	in.At = began
	if victim != nil {
		in.Server = victim.ID
	}
	return in, nil
}

// addr returns the index of the server that a client is or was last connected to.
func (c *crowd) addr(m *client) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.addrs[m.at]
}

// assess evaluates the clients' records.
func (c *crowd) assess(began time.Time, writers, survivors []*client, before map[*client]int) Incident {
	// A gap begins with the last reply before it, so we look back far enough to include
	// one.
	from := began.Add(-time.Second)
	var in Incident
	var all []time.Time
	for _, m := range writers {
		times := m.since(from)
		all = append(all, times...)
		in.EveryWriter = max(in.EveryWriter, millis(longest(times, began).length()))
	}
	gap := longest(sorted(all), began)
	in.NoWrite = millis(gap.length())
	for _, m := range survivors {
		in.Connections++
		kept := m.connections() == before[m]
		if kept {
			in.Kept++
		}
		if m.task == write {
			continue
		}
		in.Readers++
		if kept {
			in.KeptReaders++
		}
		if m.task == read {
			times := m.since(from)
			in.NoRead = max(in.NoRead, millis(longest(times, began).length()))
			in.Reads += count(times, gap)
		}
	}
	return in
}

// span is a period of time.
type span struct{ from, to time.Time }

func (s span) length() time.Duration { return s.to.Sub(s.from) }

// longest returns the longest gap between consecutive times that ends after began. The
// times must be sorted.
func longest(times []time.Time, began time.Time) span {
	var found span
	for i := 1; i < len(times); i++ {
		if s := (span{times[i-1], times[i]}); s.to.After(began) && s.length() > found.length() {
			found = s
		}
	}
	return found
}

// total adds up the gaps between consecutive times that are longer than unnoticed.
func total(times []time.Time, unnoticed time.Duration) time.Duration {
	var sum time.Duration
	for i := 1; i < len(times); i++ {
		if d := times[i].Sub(times[i-1]); d > unnoticed {
			sum += d
		}
	}
	return sum
}

// count returns the number of times within a span.
func count(times []time.Time, s span) int {
	n := 0
	for _, t := range times {
		if t.After(s.from) && t.Before(s.to) {
			n++
		}
	}
	return n
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// sorted sorts times in place and returns them.
func sorted(times []time.Time) []time.Time {
	slices.SortFunc(times, time.Time.Compare)
	return times
}
