package sim

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum/transport"
)

// faults lists all kinds of fault; each is equally likely.
var faults = []fault{
	{"partition: one server", func(n *nemesis) bool {
		h := n.victim()
		n.say("%s is cut off from the others", h.name)
		n.c.net.Partition([]string{h.name}, n.others(h))
		return true
	}},
	{"partition: halves", func(n *nemesis) bool {
		h := n.victim()
		o := n.others(h)
		side := append([]string{h.name}, o[:len(o)/2]...)
		n.say("%v are cut off from %v", side, o[len(o)/2:])
		n.c.net.Partition(side, o[len(o)/2:])
		return true
	}},
	{"partition: bridge", func(n *nemesis) bool { // only one server reaches both sides
		h := n.victim()
		o := n.others(h)
		n.say("%v and %v reach only %s", o[:len(o)/2], o[len(o)/2:], h.name)
		n.c.net.Partition(o[:len(o)/2], o[len(o)/2:])
		return true
	}},
	{"partition: ring", func(n *nemesis) bool { // every server has a majority, no two the same
		if len(n.c.hosts) < 5 {
			return false
		}
		n.say("everybody reaches only its neighbours")
		for i, a := range n.c.hosts {
			for j, b := range n.c.hosts {
				if d := (i - j + len(n.c.hosts)) % len(n.c.hosts); d > 1 && d < len(n.c.hosts)-1 {
					n.c.net.Hold(a.name, b.name)
				}
			}
		}
		return true
	}},
	{"one way: deaf", func(n *nemesis) bool {
		h := n.victim()
		n.say("nothing reaches %s from the others", h.name)
		for _, o := range n.others(h) {
			n.c.net.Hold(o, h.name)
		}
		return true
	}},
	{"one way: mute", func(n *nemesis) bool {
		h := n.victim()
		n.say("nothing from %s reaches the others", h.name)
		for _, o := range n.others(h) {
			n.c.net.Hold(h.name, o)
		}
		return true
	}},
	{"one way: one link", func(n *nemesis) bool {
		h := n.victim()
		o := n.others(h)[0]
		n.say("nothing from %s reaches %s", h.name, o)
		n.c.net.Hold(h.name, o)
		return true
	}},
	{"delay", func(n *nemesis) bool {
		h, d := n.victim(), n.up(400*time.Millisecond)
		n.say("what %s sends takes %v", h.name, d)
		for _, o := range n.others(h) {
			n.c.net.Delay(h.name, o, d)
		}
		return true
	}},
	{"reordering", func(n *nemesis) bool {
		d := n.up(150 * time.Millisecond)
		n.say("connections overtake one another by up to %v", d)
		for _, a := range n.allHosts() {
			for _, b := range n.allHosts() {
				n.c.net.Jitter(a, b, d)
			}
		}
		return true
	}},
	{"loss: reset", func(n *nemesis) bool {
		h := n.victim()
		o := n.others(h)[0]
		n.say("connections between %s and %s are reset", h.name, o)
		n.c.net.Reset(h.name, o)
		return true
	}},
	{"loss: stall", func(n *nemesis) bool { // as when packets are lost for a moment
		h := n.victim()
		for range 1 + n.rnd.IntN(5) {
			o := n.others(h)[0]
			n.say("the link between %s and %s stalls", h.name, o)
			n.c.net.Partition([]string{h.name}, []string{o})
			n.sleep(0, 900*time.Millisecond)
			n.c.net.Rejoin([]string{h.name}, []string{o})
		}
		return true
	}},
	{"clients: cut off", func(n *nemesis) bool {
		h, from := n.victim(), clientHost(n.rnd.Int64N(3))
		n.say("%s and %s are cut off from each other", from, h.name)
		n.c.net.Partition([]string{from}, []string{h.name})
		return true
	}},
	{"clients: one way", func(n *nemesis) bool {
		h, from := n.victim(), clientHost(n.rnd.Int64N(3))
		if n.rnd.IntN(2) == 0 {
			n.say("nothing from %s reaches %s", h.name, from)
			n.c.net.Hold(h.name, from)
		} else {
			n.say("nothing from %s reaches %s", from, h.name)
			n.c.net.Hold(from, h.name)
		}
		return true
	}},
	{"clients: reset", func(n *nemesis) bool {
		h := n.victim()
		n.say("the clients of %s lose their connections", h.name)
		for i := range int64(3) {
			n.c.net.Reset(h.name, clientHost(i))
		}
		return true
	}},
	{"duplicates", (*nemesis).duplicate},
	{"late snapshot", (*nemesis).lateSnapshot},
	{"kill -9", func(n *nemesis) bool { return n.end(n.running(), false) }},
	{"power cut: one", func(n *nemesis) bool { return n.end(n.running(), true) }},
	{"power cut: all", func(n *nemesis) bool {
		n.say("the power goes everywhere")
		hit := false
		for _, h := range n.c.hosts {
			hit = n.end(h, true) || hit
		}
		return hit
	}},
	{"power cut: in a write", func(n *nemesis) bool { return n.trap(n.running(), 1+n.rnd.IntN(60)) }},
	{"power cut: at start", func(n *nemesis) bool { // while it recovers from a power cut
		h := n.running()
		if !n.end(h, true) {
			return false
		}
		moments := 1 + n.rnd.IntN(60)
		h.drive.set(func() { h.drive.trap, h.drive.fire = moments, func() { n.trapped(h) } })
		n.c.startHost(h)
		return true
	}},
	{"stop", func(n *nemesis) bool {
		h := n.running()
		if h == nil {
			return false
		}
		n.say("%s is stopped", h.name)
		h.up().stop()
		return true
	}},
	{"pause", func(n *nemesis) bool { // like SIGSTOP, as far as other servers can see
		h := n.running()
		if h == nil {
			return false
		}
		n.say("%s stands still", h.name)
		n.c.net.Partition([]string{h.name}, n.allHosts())
		h.drive.stall()
		return true
	}},
	{"wiped disk", (*nemesis).wipe},
	{"disk: full", func(n *nemesis) bool {
		return n.spoil(n.running(), "disk full", func(d *drive) { d.fullUp = true })
	}},
	{"disk: fsync error", func(n *nemesis) bool {
		return n.spoil(n.running(), "fsync error", func(d *drive) { d.broken = 1 + n.rnd.IntN(8) })
	}},
	{"disk: fsync stall", func(n *nemesis) bool { return n.stall(n.running()) }},
	{"disk: fsync stall of all", func(n *nemesis) bool {
		hit := false
		for _, h := range n.c.hosts {
			hit = h.node() != nil && n.stall(h) || hit
		}
		return hit
	}},
	{"clock: skew", func(n *nemesis) bool {
		h := n.victim()
		d := n.up(4*time.Second) - 2*time.Second
		n.say("the clock of %s is wrong by %v", h.name, d)
		h.clock.ahead.Store(int64(d))
		return true
	}},
	{"clock: jump of a year", func(n *nemesis) bool {
		h := n.victim()
		d := time.Duration(1-2*n.rnd.IntN(2)) * 365 * 24 * time.Hour
		n.say("the clock of %s jumps by %v", h.name, d)
		h.clock.ahead.Store(int64(d))
		n.undo = append(n.undo, func() { h.clock.ahead.Store(0) })
		return true
	}},
	{"transfer of the lead", (*nemesis).transfer},
	{"reconfig: a voter leaves", func(n *nemesis) bool { return n.churn(false, "") }},
	{"reconfig: a voter observes", func(n *nemesis) bool { return n.churn(false, "observer") }},
	{"reconfig: an observer leaves", func(n *nemesis) bool { return n.churn(true, "") }},
	{"reconfig: an observer votes", func(n *nemesis) bool { return n.churn(true, "participant") }},
	{"hostile peer", (*nemesis).hostilePeer},
	{"snapshot", func(n *nemesis) bool {
		h := n.running()
		if h == nil {
			return false
		}
		node := h.node()
		n.say("%s writes a snapshot", h.name)
		go func() { _ = node.Snapshot() }()
		return true
	}},
}

// end ends a process at once.
func (n *nemesis) end(h *host, powerCut bool) bool {
	if h == nil || h.up() == nil {
		return false
	}
	n.say("%s dies, by a power cut: %v", h.name, powerCut)
	h.up().end(powerCut)
	return true
}

// trap cuts the power of a server at one of its next writes.
func (n *nemesis) trap(h *host, moments int) bool {
	if h == nil {
		return false
	}
	n.say("the power of %s will go when it writes", h.name)
	h.drive.set(func() { h.drive.trap, h.drive.fire = moments, func() { n.trapped(h) } })
	return true
}

// trapped is called from inside a write.
func (n *nemesis) trapped(h *host) {
	p := h.up()
	if p == nil {
		return
	}
	n.say("the power of %s goes while it writes", h.name)
	n.c.note("power cut in a write")
	p.end(true)
}

// wipe empties a server's disk. The next server may only lose its disk after this
// one has a vote again.
func (n *nemesis) wipe() bool {
	h := n.running()
	if h == nil || len(n.moved) > 0 || n.wiped != nil && !n.rejoined(n.wiped) {
		return false
	}
	was := n.wiped
	n.wiped = h
	if was != nil && !n.c.whole() {
		n.wiped = was
		return false
	}
	n.say("%s loses its disk", h.name)
	h.up().end(false)
	h.drive.wipe()
	n.promise("the server that lost its disk came back", func() bool { return n.rejoined(h) })
	return true
}

func (n *nemesis) rejoined(h *host) bool { return h.status().Serving && n.c.whole() }

// spoil breaks a disk; the server must notice and stop.
func (n *nemesis) spoil(h *host, what string, f func(*drive)) bool {
	if h == nil {
		return false
	}
	n.say("%s: %s", h.name, what)
	h.mu.Lock()
	h.expected = true
	h.mu.Unlock()
	h.drive.set(func() { f(h.drive) })
	return true
}

// stall makes the fsyncs of a server hang.
func (n *nemesis) stall(h *host) bool {
	if h == nil {
		return false
	}
	n.say("fsync hangs on %s", h.name)
	h.drive.stall()
	return true
}

// transfer makes the leader hand over its leadership.
func (n *nemesis) transfer() bool {
	lead := n.c.leader()
	if lead == nil {
		return false
	}
	node := lead.node()
	if node == nil {
		return false
	}
	n.say("%s hands over the lead", lead.name)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := node.Transfer(ctx); err != nil {
		n.say("it could not: %v", err)
		return false
	}
	return true
}

// duplicate delivers Raft messages twice, the second time late.
func (n *nemesis) duplicate() bool {
	n.say("messages of Raft come twice")
	most := n.up(5 * time.Second)
	seed := n.rnd.Uint64()
	luck := rnd(seed, 0)
	n.c.setReplays(func(_ string, message any) []transport.Replay {
		switch message.(type) {
		case *raft.InstallSnapshotRequest:
			n.c.note("InstallSnapshot twice")
			n.c.mu.Lock()
			defer n.c.mu.Unlock()
			return []transport.Replay{{After: time.Duration(luck.Int64N(int64(most) + 1))}} // every one, because they are rare
		case *raft.TimeoutNowRequest:
			return nil
		default:
			n.c.note("message of Raft twice")
		}
		n.c.mu.Lock()
		defer n.c.mu.Unlock()
		if luck.IntN(4) > 0 {
			return nil
		}
		return []transport.Replay{{After: time.Duration(luck.Int64N(int64(most) + 1))}}
	})
	n.undo = append(n.undo, func() { n.c.setReplays(nil) })
	return true
}

func (c *Cluster) setReplays(f func(string, any) []transport.Replay) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replays = f
}
