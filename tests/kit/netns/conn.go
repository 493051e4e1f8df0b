package netns

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// firstBytes is how much of the client's first data is kept per connection.
const firstBytes = 64

// Conn is a TCP connection as the packet filter has seen it. It is a copy and
// does not change.
type Conn struct {
	From, To string         // hosts: From has opened it
	Src, Dst netip.AddrPort // Src is From's end
	First    []byte         // the first bytes that From has sent, up to 64
	Sent     int64          // payload bytes that From has sent,
	Received int64          // and received; retransmissions count again
	Opened   time.Time
	LastSeen time.Time // when the last packet in either direction was seen

	state connState
}

type connState struct {
	born        uint32 // sequence number of the SYN
	answered    bool   // with SYN and ACK
	fins        [2]bool
	over        bool // ended by both sides or by a reset
	forgotten   bool
	reset       bool
	acks        [2]uint32 // last acknowledgment sent by From and To
	established bool
}

// pair identifies a connection by its ends.
type pair struct{ src, dst netip.AddrPort }

// table is the state of the packet filter.
type table struct {
	mu    sync.Mutex
	conns map[pair]*Conn
}

// verdict says what happens to a packet.
type verdict uint8

const (
	forward verdict = iota
	drop
	refuse // answer it with a reset
)

// see records a packet of a TCP connection and returns what happens to it.
func (t *table) see(p *packet, from, to string, now time.Time) verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.flags&(flagSyn|flagAck|flagRst) == flagSyn {
		key := pair{p.src, p.dst}
		if c := t.conns[key]; c == nil || c.state.over || c.state.forgotten && c.state.born != p.seq {
			t.conns[key] = &Conn{From: from, To: to, Src: p.src, Dst: p.dst, Opened: now, LastSeen: now, state: connState{born: p.seq}}
		}
	}
	c, opener := t.conns[pair{p.src, p.dst}], true
	if c == nil {
		c, opener = t.conns[pair{p.dst, p.src}], false
	}
	switch {
	case c == nil:
		return forward // a reset for a port where no process listens, or older than this filter
	case c.state.forgotten:
		return drop
	case c.state.reset:
		if p.flags&flagRst != 0 {
			return forward
		}
		return refuse
	}
	c.note(p, opener, now)
	return forward
}

// note updates the connection from a packet.
func (c *Conn) note(p *packet, opener bool, now time.Time) {
	c.LastSeen = now
	way := 1
	if opener {
		way = 0
		if off := p.seq - c.state.born - 1; int64(off) == int64(len(c.First)) && len(c.First) < firstBytes {
			c.First = append(c.First, p.payload[:min(len(p.payload), firstBytes-len(c.First))]...)
		}
		c.Sent += int64(len(p.payload))
	} else {
		c.Received += int64(len(p.payload))
	}
	if p.flags&flagAck != 0 {
		c.state.acks[way] = p.ack
	}
	switch {
	case p.flags&flagRst != 0:
		c.state.over = true
	case p.flags&flagFin != 0:
		c.state.fins[way] = true
		c.state.over = c.state.fins[1-way]
	case p.flags&flagSyn != 0 && !opener:
		c.state.answered = true
	case p.flags&flagAck != 0 && opener && c.state.answered:
		c.state.established = true
	}
}

// live returns the established connections, oldest first.
func (t *table) live() []Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []Conn
	for key, c := range t.conns {
		switch {
		case c.state.over && time.Since(c.LastSeen) > time.Minute:
			delete(t.conns, key)
		case c.state.established && !c.state.over && !c.state.forgotten && !c.state.reset && !c.state.fins[0] && !c.state.fins[1]:
			one := *c
			one.First = slices.Clone(c.First)
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b Conn) int {
		return cmp.Or(a.Opened.Compare(b.Opened), a.Src.Compare(b.Src))
	})
	return all
}

// mark changes the state of those listed connections that still exist, and
// returns how many they were.
func (t *table) mark(list []Conn, f func(*connState)) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range list {
		if c := t.conns[pair{one.Src, one.Dst}]; c != nil && c.state.born == one.state.born && !c.state.over {
			f(&c.state)
			n++
		}
	}
	return n
}
