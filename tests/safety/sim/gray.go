package sim

import (
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// These faults come from a network that does not go down: it silently forgets the
// state of established connections, while new ones work, or it loses only large
// packets.
//
// If there is no other fault, they come with a guarantee about time: within a
// bound, every server that can serve does so again.

const (
	// forgottenBound is the bound for forgotten connections: syncLimit ×
	// tickTime, or 5 s.
	forgottenBound = min(syncLimit*tickTime, 5*time.Second)
	// largeBound is the bound for a leader that loses its large packets.
	largeBound = 10 * time.Second
	// probeBytes is the size of the write that must get through.
	probeBytes = 3000
)

// largeSizes are the sizes from which packets are lost.
var largeSizes = []int{200, 1400} //nolint:gochecknoglobals // a table

var grayFaults = []fault{ //nolint:gochecknoglobals // a table
	{"forgotten: one connection", func(n *nemesis) bool {
		h := n.victim()
		var all [][2]string
		n.c.net.Connections(func(d, a string) {
			if d != a && (d == h.name && n.isServer(a) || a == h.name && n.isServer(d)) {
				all = append(all, [2]string{d, a})
			}
		})
		if len(all) == 0 {
			return false
		}
		one, done := all[n.rnd.IntN(len(all))], false
		return n.forget(fmt.Sprintf("a connection from %s to %s", one[0], one[1]), func(d, a string) bool {
			hit := !done && d == one[0] && a == one[1]
			done = done || hit
			return hit
		})
	}},
	{"forgotten: a pair", func(n *nemesis) bool {
		h := n.victim()
		o := n.others(h)[0]
		return n.forget("those between "+h.name+" and "+o, func(d, a string) bool {
			return d == h.name && a == o || d == o && a == h.name
		})
	}},
	{"forgotten: opened by one server", func(n *nemesis) bool {
		h := n.victim()
		return n.forget("those that "+h.name+" opened", func(d, a string) bool { return d == h.name && n.isServer(a) })
	}},
	{"forgotten: all of one server", func(n *nemesis) bool {
		h := n.victim()
		return n.forget("all of "+h.name, func(d, a string) bool {
			return d == h.name && n.isServer(a) || a == h.name && n.isServer(d)
		})
	}},
	{"forgotten: all", func(n *nemesis) bool {
		return n.forget("all between servers", func(d, a string) bool { return n.isServer(d) && n.isServer(a) })
	}},
	{"large packets: of the leader", func(n *nemesis) bool {
		lead := n.c.leader()
		if lead == nil {
			return false
		}
		size := largeSizes[n.rnd.IntN(len(largeSizes))]
		whole := n.undisturbed()
		n.say("packets of %d bytes and more from %s are lost", size, lead.name)
		for _, o := range n.others(lead) {
			n.c.net.Lose(lead.name, o, size)
		}
		if whole {
			n.servedWithin(largeBound, fmt.Sprintf("packets of %d bytes and more from the leader, %s, are lost", size, lead.name), lead)
		}
		return true
	}},
	{"large packets: one way", func(n *nemesis) bool {
		h, size := n.victim(), largeSizes[n.rnd.IntN(len(largeSizes))]
		o := n.others(h)[0]
		n.say("packets of %d bytes and more from %s to %s are lost", size, h.name, o)
		n.c.net.Lose(h.name, o, size)
		return true
	}},
	{"large packets: both ways", func(n *nemesis) bool {
		h, size := n.victim(), largeSizes[n.rnd.IntN(len(largeSizes))]
		n.say("packets of %d bytes and more from and to %s are lost", size, h.name)
		for _, o := range n.others(h) {
			n.c.net.Lose(h.name, o, size)
			n.c.net.Lose(o, h.name, size)
		}
		return true
	}},
}

func (n *nemesis) isServer(name string) bool {
	return slices.ContainsFunc(n.c.hosts, func(h *host) bool { return h.name == name })
}

// undisturbed reports whether there is no fault yet except the one about to be
// injected.
func (n *nemesis) undisturbed() bool { return !n.disturbed && len(n.undo) == 0 && n.c.whole() }

// forget makes the network forget connections.
func (n *nemesis) forget(which string, match func(dialer, acceptor string) bool) bool {
	whole := n.undisturbed()
	count := n.c.net.Forget(match)
	n.say("the network forgets %s: %d", which, count)
	if count > 0 && whole {
		n.servedWithin(forgottenBound, "the network has forgotten "+which, nil)
	}
	return count > 0
}

// servedWithin requires every server except but to complete a large write within
// a limit.
func (n *nemesis) servedWithin(limit time.Duration, why string, but *host) {
	began := time.Now()
	for _, h := range n.c.hosts {
		if h == but {
			continue
		}
		for {
			p := h.up()
			if p == nil || p.isGone() {
				return // the server stopped by itself; stoppedItself handles that
			}
			err := probe(p, began.Add(limit))
			if err == nil {
				break
			}
			if time.Since(began) > limit {
				n.c.violate("%s: no write through %s for %v: %v", why, h.name, limit, err)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	n.c.note("served in time: " + map[bool]string{true: "forgotten connections", false: "large packets"}[but == nil])
}

// probe makes a large write that changes nothing, as a new client of a server.
func probe(p *process, by time.Time) error {
	nc, err := p.srv.Dial()
	if err != nil {
		return err
	}
	defer nc.Close()
	_ = nc.SetDeadline(by.Add(100 * time.Millisecond))
	return probeOver(nc)
}

func probeOver(nc net.Conn) error {
	hello := proto.ConnectRequest{TimeOut: int32(patience.Milliseconds()), Passwd: make([]byte, proto.PasswordSize)}
	if _, err := exchange(nc, hello.Append(nil)); err != nil {
		return err
	}
	h := proto.RequestHeader{Xid: 1, Op: proto.OpSetData}
	req := proto.SetDataRequest{Path: "/there-is-no-such-znode", Data: make([]byte, probeBytes), Version: -1}
	body, err := exchange(nc, req.Append(h.Append(nil)))
	if err != nil {
		return err
	}
	r := proto.NewReader(body)
	var reply proto.ReplyHeader
	if reply.Decode(&r); reply.Err != proto.ErrNoNode {
		return fmt.Errorf("the write came back with %v", reply.Err)
	}
	bye := proto.RequestHeader{Xid: 2, Op: proto.OpCloseSession}
	_, _ = exchange(nc, bye.Append(nil))
	return nil
}
