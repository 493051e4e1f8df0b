package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// nemesis breaks a cluster, but only in ways that it must survive, and repairs it.
type nemesis struct {
	c   *Cluster
	rnd *rand.Rand

	faults    []fault        // that it may inject
	undo      []func()       // undo the current faults
	done      map[string]int // faults that had an effect, by kind
	hostiles  int            // hostile processes so far
	promised  []promise      // faults that will show their effect later
	wiped     *host          // has lost its disk and has no vote yet
	moved     []*host        // have, or may get, another place in the ensemble than the layout says
	disturbed bool           // a fault was injected since the last call of mend
	uncertain time.Time      // when a request to move a server last ended without a known result
}

// promise is a fault. We must see its effect.
type promise struct {
	what string
	kept func() bool
}

// fault is one kind of fault. do returns false if the fault cannot be injected
// now; the nemesis then tries another kind.
type fault struct {
	name string
	do   func(n *nemesis) bool
}

func newNemesis(c *Cluster, seed uint64) *nemesis {
	return &nemesis{c: c, rnd: rnd(seed, 77), faults: allFaults(), done: make(map[string]int)}
}

// only restricts the nemesis to some kinds of fault.
func (n *nemesis) only(names []string) {
	if len(names) == 0 {
		return
	}
	n.faults = slices.DeleteFunc(allFaults(), func(f fault) bool { return !slices.Contains(names, f.name) })
}

// allFaults returns the faults of every file.
func allFaults() []fault { return slices.Concat(faults, grayFaults) }

// torment breaks and repairs the cluster until the time is over, and then repairs
// everything.
func (n *nemesis) torment(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		n.sleep(200*time.Millisecond, 4*time.Second)
		for range 1 + n.rnd.IntN(2) {
			n.inject()
			n.sleep(0, 300*time.Millisecond)
		}
		n.sleep(300*time.Millisecond, 7*time.Second)
		if n.rnd.IntN(4) > 0 {
			n.mend()
		}
	}
	n.mend()
	// If a server's fsync hung until now, it may have returned an error, and the server stops.
	time.Sleep(time.Second)
	n.c.startAll()
	n.settleAll()
}

// inject injects one fault.
func (n *nemesis) inject() {
	for range 20 {
		f := n.faults[n.rnd.IntN(len(n.faults))]
		if f.do(n) {
			n.disturbed = true
			n.done[f.name]++
			return
		}
	}
}

// mend ends every fault and starts the servers that do not run.
func (n *nemesis) mend() {
	for _, f := range n.undo {
		f()
	}
	n.undo = nil
	n.healLinks()
	for _, h := range n.c.hosts {
		h.drive.set(func() { h.drive.fullUp, h.drive.broken, h.drive.trap = false, 0, 0 })
		h.drive.release()
	}
	n.c.startAll()
	n.settle()
	n.disturbed = false
}

func (n *nemesis) healLinks() {
	all := n.allHosts()
	n.c.net.Rejoin(all, all)
}

// allHosts returns every name in the network, including the clients.
func (n *nemesis) allHosts() []string {
	var all []string
	for _, h := range n.c.hosts {
		all = append(all, h.name)
	}
	for i := range int64(3) {
		all = append(all, clientHost(i))
	}
	return all
}

// promise records that kept must be true by the end of the run.
func (n *nemesis) promise(what string, kept func() bool) {
	n.promised = append(n.promised, promise{what, kept})
}

func (n *nemesis) sleep(least, most time.Duration) { time.Sleep(least + n.up(most-least)) }

// up returns a random duration of at most d.
func (n *nemesis) up(d time.Duration) time.Duration { return time.Duration(n.rnd.Int64N(int64(d) + 1)) }

// say writes to the trace.
func (n *nemesis) say(format string, args ...any) {
	n.c.trace.say("-- %s", fmt.Sprintf(format, args...))
}

// victim returns a random server: the leader half of the time.
func (n *nemesis) victim() *host {
	if lead := n.c.leader(); lead != nil && n.rnd.IntN(2) == 0 {
		return lead
	}
	return n.c.hosts[n.rnd.IntN(len(n.c.hosts))]
}

// running returns a victim, or nil if it does not run.
func (n *nemesis) running() *host {
	if h := n.victim(); h.node() != nil {
		return h
	}
	return nil
}

// others returns the names of all servers except h, in random order.
func (n *nemesis) others(h *host) []string {
	var list []string
	for _, o := range n.c.hosts {
		if o != h {
			list = append(list, o.name)
		}
	}
	n.rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
