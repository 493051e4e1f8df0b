package raftfsm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// TestRefusedAddressesChangeNothing: the leader refuses such a list before it changes
// anything, and logs why.
func TestRefusedAddressesChangeNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		log := &lines{}
		c.startAll(log.into)
		_, r := c.follower()
		told, before := r.configText(), raftAddrs(r)
		s := r.attach(time.Minute)
		swap := strings.Replace(serverLine(1), ":2888:", ":2181:", 1)
		if o := r.do(reconfigure(s, strings.Replace(swap, ";0.0.0.0:2181", ";0.0.0.0:2888", 1), "", "", -1)); o.code != proto.ErrBadArguments {
			t.Errorf("%+v", o)
		}
		twice := strings.Replace(serverLine(1)+","+serverLine(2)+","+serverLine(3), "s1:2888:", "s2:2888:", 1)
		if o := r.do(reconfigure(s, "", "", twice, -1)); o.code != proto.ErrBadArguments {
			t.Errorf("%+v", o)
		}
		if n := log.count("servers can't listen at the addresses"); n != 2 {
			t.Errorf("logged %d times", n)
		}
		if got := r.configText(); got != told || raftAddrs(r)[1] != before[1] {
			t.Errorf("%q became %q, and server 1 is at %s", told, got, raftAddrs(r)[1])
		}
		c.settled()
	})
}

// TestJoinAtAnotherPort adds a running server at another port than the one in its own
// file. It is brought up to date at the old port, and then listens at the new one.
func TestJoinAtAnotherPort(t *testing.T) {
	for _, host := range []string{hostOf(4), "0.0.0.0"} { // in the own file
		t.Run(host, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCluster(t, 3)
				c.startAll()
				c.awaitLevel(membership.NamedLevel)
				own := memberAt(4)
				own.QuorumAddr = host + ":2888"
				c.start(4, func(cfg *Config) { cfg.Members = append(append([]membership.Member{}, c.list...), own) })
				time.Sleep(2 * time.Second)
				r := c.rigs[1]
				if o := r.do(reconfigure(r.attach(time.Hour), strings.Replace(serverLine(4), ":2888:", ":2988:", 1), "", "", -1)); o.code != proto.Ok {
					t.Fatalf("%+v", o)
				}
				c.awaitIDs("1,2,3,4 voting 1,2,3,4 others ")
				c.rigs[4].awaitServed()
				c.staysAt(4, r.configText())
				c.settled()
			})
		})
	}
}

// TestUnreachableJoiner adds a running server at a wrong host. The reconfig is carried
// out as if the server were down, and the log says why it is missing.
func TestUnreachableJoiner(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, 3)
		log := &lines{}
		c.startAll(log.into)
		c.start(4, func(cfg *Config) { cfg.Members = append(append([]membership.Member{}, c.list...), memberAt(4)) })
		time.Sleep(2 * time.Second)
		r := c.rigs[1]
		start := time.Now()
		o := r.do(reconfigure(r.attach(time.Hour), strings.Replace(serverLine(4), "s4:", "nowhere:", 1), "", "", -1))
		if took := time.Since(start); o.code != proto.Ok || took > 3*ensemble.AbsentAfter {
			t.Fatalf("%+v after %v", o, took)
		}
		c.awaitIDs("1,2,3,4 voting 1,2,3 others ")
		time.Sleep(cost.InShort(5*time.Second, 20*time.Second))
		if n := log.count("cannot reach a server that asked to join"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		if o := r.do(reconfigure(r.attach(time.Hour), serverLine(4), "", "", -1)); o.code != proto.Ok {
			t.Fatalf("%+v", o)
		}
		c.awaitIDs("1,2,3,4 voting 1,2,3,4 others ")
	})
}

// TestReconfigNeedsTheJoiner: with NeedsAll, a reconfig adds no server that doesn't call the
// leader, or that the leader can't reach. The ensemble stays as it was.
func TestReconfigNeedsTheJoiner(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS=%t", secure), func(t *testing.T) {
			inBubble(t, func(t *testing.T) { reconfigNeedsTheJoiner(t, secure) })
		})
	}
}

func reconfigNeedsTheJoiner(t *testing.T, secure bool) {
	// As with the certificates of a StatefulSet, each is good for all servers.
	c, security := newCluster(t, 3), secured(t, hostOf(1), hostOf(2), hostOf(3), hostOf(4))
	start := func(id uint64, security func(id uint64) *TLS) *rig {
		return c.start(id, func(cfg *Config) {
			cfg.NeedsAll = true
			if secure {
				cfg.Peers.TLS = security(id)
			}
			if id > 3 {
				cfg.Members = append(slices.Clone(c.list), memberAt(id))
			}
		})
	}
	for id := uint64(1); id <= 3; id++ {
		start(id, security)
	}
	for _, r := range c.rigs {
		r.awaitServed()
	}
	r := c.rigs[1]
	s := r.attach(time.Hour)
	refused := func(what string, joining, leaving string) {
		t.Helper()
		before, start := r.configText(), time.Now()
		if o := r.do(reconfigure(s, joining, leaving, "", -1)); o.code != proto.ErrNewConfigNoQuorum || time.Since(start) > 5*time.Second {
			t.Errorf("%s: %v after %v", what, o.code, time.Since(start))
		}
		if r.configText() != before {
			t.Errorf("%s: the membership is %q", what, r.configText())
		}
		c.awaitIDs("1,2,3 voting 1,2,3 others ")
	}
	refused("a server that is not there", serverLine(4), "")
	refused("instead of another one", serverLine(4), "3")
	refused("an observer that is not there", observerLine(4), "")

	if secure {
		start(4, secured(t))
		time.Sleep(2 * time.Second)
		refused("a server with the certificate of another authority", serverLine(4), "")
		c.kill(4)
	}
	start(4, security)
	time.Sleep(2 * time.Second)
	refused("one that can't be reached", strings.Replace(serverLine(4), "s4:", "nowhere:", 1), "")
	refused("one of two", serverLine(4)+","+serverLine(5), "")
	if o := r.do(reconfigure(s, serverLine(4), "", "", -1)); o.code != proto.Ok {
		t.Fatalf("%+v", o)
	}
	c.awaitIDs("1,2,3,4 voting 1,2,3,4 others ")

	// A member that is down stays one, and an observer that is down gets no vote.
	if o := r.do(reconfigure(s, observerLine(4), "", "", -1)); o.code != proto.Ok {
		t.Fatalf("%+v", o)
	}
	c.awaitIDs("1,2,3,4 voting 1,2,3 others 4")
	c.kill(4)
	time.Sleep(5 * time.Second)
	if o := r.do(reconfigure(s, serverLine(4), "", "", -1)); o.code != proto.ErrNewConfigNoQuorum {
		t.Errorf("a vote for an observer that is down: %+v", o)
	}
	if o := r.do(reconfigure(s, strings.Replace(observerLine(4), ":2181", ":2182", 1), "", "", -1)); o.code != proto.Ok {
		t.Errorf("another port for an observer that is down: %+v", o)
	}
	if o := r.do(reconfigure(s, "", "4", "", -1)); o.code != proto.Ok {
		t.Errorf("%+v", o)
	}
	c.awaitIDs("1,2,3 voting 1,2,3 others ")
	c.settled()
}

// TestClientAddressFollowsTheFile: a server that starts with another client address in its
// file listens there, so the membership has it, unless a reconfig has named the line.
func TestClientAddressFollowsTheFile(t *testing.T) {
	for _, named := range []bool{false, true} {
		t.Run(fmt.Sprintf("named=%t", named), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCluster(t, 3).onDisk()
				c.startAll()
				c.awaitLevel(membership.NamedLevel)
				id, _ := c.follower()
				r := c.rigs[id%3+1]
				if named {
					if o := r.do(reconfigure(r.attach(time.Hour), strings.Replace(serverLine(id), ":2181", ":2182", 1), "", "", -1)); o.code != proto.Ok {
						t.Fatalf("%+v", o)
					}
				}
				told := r.configText()
				c.stop(id)
				c.start(id, func(cfg *Config) {
					cfg.Members = append([]membership.Member{}, c.list...)
					cfg.Members[id-1].ClientAddr = "0.0.0.0:2183"
				}).awaitServed()
				line := strings.Replace(serverLine(id), ":2181", ":2183", 1) + "\n"
				if named {
					time.Sleep(20 * time.Second)
					if got := r.configText(); got != told {
						t.Errorf("%q became %q", told, got)
					}
					return
				}
				c.eventually("the client address in the membership", func() bool { return strings.Contains(r.configText(), line) })
				c.settled()
			})
		})
	}
}
