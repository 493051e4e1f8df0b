package fourletter

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/zkgo/zkgo/internal/ops/status"
)

// javaDate is the layout of java.util.Date.
const javaDate = "Mon Jan 02 15:04:05 MST 2006"

// server prints the answer to srvr, or with conns to stat.
func server(b *bufio.Writer, s status.Server, conns []status.Conn, self string) {
	fmt.Fprintf(b, "Zookeeper version: %s\n", s.Version)
	if s.ReadOnly {
		b.WriteString("READ-ONLY mode; serving only read-only clients\n")
	}
	if conns != nil {
		b.WriteString("Clients:\n")
		for _, c := range conns {
			connection(b, c, self, true)
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "Latency min/avg/max: %d/%s/%d\n", s.LatencyMin, Float(s.LatencyAvg), s.LatencyMax)
	fmt.Fprintf(b, "Received: %d\nSent: %d\nConnections: %d\nOutstanding: %d\n", s.Received, s.Sent, s.Connections, s.Outstanding)
	fmt.Fprintf(b, "Zxid: 0x%x\nMode: %s\nNode count: %d\n", uint64(s.Zxid), s.Mode, s.Nodes)
	if s.Leads {
		fmt.Fprintf(b, "Proposal sizes last/min/max: %d/%d/%d\n", s.LastProposal, s.MinProposal, s.MaxProposal)
	}
}

// Float formats a number as Java formats a double with at most four decimals.
func Float(f float64) string {
	text := strconv.FormatFloat(f, 'f', 4, 64)
	for text[len(text)-1] == '0' && text[len(text)-2] != '.' {
		text = text[:len(text)-1]
	}
	return text
}

func connections(b *bufio.Writer, conns []status.Conn, self string) {
	for _, c := range conns {
		connection(b, c, self, false)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
}

// connection prints one connection, with brief in the format of stat.
func connection(b *bufio.Writer, c status.Conn, self string, brief bool) {
	interest := c.Interest
	if c.Addr == self {
		interest = 0
	}
	fmt.Fprintf(b, " /%s[%x](queued=%d,recved=%d,sent=%d", c.Addr, interest, c.Queued, c.Received, c.Sent)
	if !brief && c.SessionID != 0 {
		fmt.Fprintf(b, ",sid=0x%x,lop=%s,est=%d,to=%d", uint64(c.SessionID), c.LastOp, c.Established.UnixMilli(), c.Timeout.Milliseconds())
		if c.LastCxid >= 0 {
			fmt.Fprintf(b, ",lcxid=0x%x", uint64(c.LastCxid))
		}
		fmt.Fprintf(b, ",lzxid=0x%x,lresp=%d,llat=%d,minlat=%d,avglat=%d,maxlat=%d",
			uint64(c.LastZxid), c.LastResponse.Milliseconds(), c.LastLatency, c.MinLatency, c.AvgLatency, c.MaxLatency)
	}
	b.WriteByte(')')
}

// dump lists the sessions by expiry time, the ephemerals by session, and the
// connections by the time at which the server closes them if it doesn't hear from
// them. A follower doesn't know when sessions expire, so it lists them with their
// timeouts.
func dump(b *bufio.Writer, srv status.Server, src status.Source) {
	s := src.Sessions()
	b.WriteString("SessionTracker dump:\n")
	if srv.Mode == "follower" || srv.Mode == "observer" {
		fmt.Fprintf(b, "Global Sessions(%d):\n", len(s.IDs))
		for i, id := range s.IDs {
			fmt.Fprintf(b, "0x%x\t%dms\n", uint64(id), s.Timeouts[i].Milliseconds())
		}
	} else {
		expiring(b, "Session Sets", s.Expiry, func(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) })
	}
	b.WriteString("ephemeral nodes dump:\n")
	fmt.Fprintf(b, "Sessions with Ephemerals (%d):\n", len(s.Ephemerals))
	for _, id := range sortedKeys(s.Ephemerals) {
		fmt.Fprintf(b, "0x%x:\n", uint64(id))
		for _, path := range s.Ephemerals[id] {
			indented(b, path)
		}
	}
	byExpiry := make(map[time.Time][]string)
	for _, c := range src.Conns() {
		byExpiry[c.Expires] = append(byExpiry[c.Expires], fmt.Sprintf("ip: /%s sessionId: 0x%x", c.Addr, uint64(c.SessionID)))
	}
	b.WriteString("Connections dump:\n")
	expiring(b, "Connections Sets", byExpiry, func(line string) string { return line })
}

// expiring prints sets ordered by expiry time.
func expiring[T any](b *bufio.Writer, title string, sets map[time.Time][]T, line func(T) string) {
	total := 0
	for _, set := range sets {
		total += len(set)
	}
	fmt.Fprintf(b, "%s (%d)/(%d):\n", title, len(sets), total)
	for _, at := range slices.SortedFunc(maps.Keys(sets), time.Time.Compare) {
		fmt.Fprintf(b, "%d expire at %s:\n", len(sets[at]), at.Format(javaDate))
		for _, v := range sets[at] {
			fmt.Fprintf(b, "\t%s\n", line(v))
		}
	}
}

func watchesBySession(b *bufio.Writer, watches map[int64][]string) {
	for _, id := range sortedKeys(watches) {
		fmt.Fprintf(b, "0x%x\n", uint64(id))
		for _, path := range watches[id] {
			indented(b, path)
		}
	}
	b.WriteByte('\n')
}

func watchesByPath(b *bufio.Writer, watches map[string][]int64) {
	for _, path := range sortedKeys(watches) {
		b.WriteString(path)
		b.WriteByte('\n')
		for _, id := range watches[path] {
			fmt.Fprintf(b, "\t0x%x\n", uint64(id))
		}
	}
	b.WriteByte('\n')
}

// indented prints a line with a path. A path may be long, so we don't copy it.
func indented(b *bufio.Writer, path string) {
	b.WriteByte('\t')
	b.WriteString(path)
	b.WriteByte('\n')
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
