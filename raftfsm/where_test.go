package raftfsm

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// raftAddrs returns the addresses in Raft's configuration by server.
func raftAddrs(r *rig) map[uint64]string {
	all := make(map[uint64]string)
	for _, s := range r.replica.Raft().GetConfiguration().Configuration().Servers {
		all[membership.ServerOf(s.ID)] = string(s.Address)
	}
	return all
}

// TestNamedLineStays gives a server another quorum port by reconfig, once for a
// follower and once for the leader. The server listens there immediately. The
// membership stays as the client's reply had it although the server's own file has the old
// port, even after the server was restarted with that file.
func TestNamedLineStays(t *testing.T) {
	for _, lead := range cost.InShort([]bool{true}, []bool{false, true}) {
		t.Run(fmt.Sprintf("leader=%t", lead), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCluster(t, 3).onDisk()
				c.startAll()
				c.awaitLevel(membership.NamedLevel)
				id, _ := c.leader()
				if !lead {
					id, _ = c.follower()
				}
				r := c.rigs[id%3+1]
				line := strings.Replace(serverLine(id), ":2888:", ":2988:", 1)
				if o := r.do(reconfigure(r.attach(time.Hour), line, "", "", -1)); o.code != proto.Ok {
					t.Fatalf("%+v", o)
				}
				told := r.configText()
				c.staysAt(id, told)
				for other := range c.rigs {
					if other != id {
						c.net.Reset(hostOf(id), hostOf(other)) // so that they dial again
					}
				}
				c.staysAt(id, told)
				c.stop(id)
				c.start(id).awaitServed()
				c.staysAt(id, told)
				c.settled()
			})
		})
	}
}

// staysAt checks for a while that the membership and Raft's configuration have a server
// at port 2988, and that the server participates.
func (c *cluster) staysAt(id uint64, told string) {
	c.t.Helper()
	want := fmt.Sprintf("%s:2988", hostOf(id))
	c.eventually("the new address in Raft's configuration", func() bool {
		_, r := c.leader()
		return raftAddrs(r)[id] == want
	})
	for range 20 {
		time.Sleep(500 * time.Millisecond)
		_, r := c.leader()
		if got := r.configText(); got != told {
			c.t.Fatalf("the client was told %q, and now there is %q", told, got)
		}
		if got := raftAddrs(r)[id]; got != want {
			c.t.Fatalf("server %d is at %s, want %s", id, got, want)
		}
	}
	c.rigs[id].awaitServed()
}

// TestQuorumPortInUse gives a server a quorum port that is in use. The server continues
// at the old one, logs that once, and moves when the port is free.
func TestQuorumPortInUse(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, 3)
		log := &lines{}
		for id := uint64(1); id <= 3; id++ {
			c.start(id, log.into)
		}
		for _, r := range c.rigs {
			r.awaitServed()
		}
		c.awaitLevel(membership.NamedLevel)
		taken, err := c.net.Host(hostOf(1)).Listen("s1:2988")
		if err != nil {
			t.Fatal(err)
		}
		r := c.rigs[2]
		if o := r.do(reconfigure(r.attach(time.Hour), strings.Replace(serverLine(1), ":2888:", ":2988:", 1), "", "", -1)); o.code != proto.Ok {
			t.Fatalf("%+v", o)
		}
		time.Sleep(20 * time.Second)
		if got := raftAddrs(r)[1]; got != "s1:2888" || !c.rigs[1].Status().Serving {
			t.Errorf("server 1 is at %s, and says %+v", got, c.rigs[1].Status())
		}
		if n := log.count("cannot listen for the other servers"); n != 1 {
			t.Errorf("said %d times", n)
		}
		_ = taken.Close()
		c.staysAt(1, r.configText())
	})
}

// lines is a log output that counts its lines.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(bytes.TrimSpace(line)))
	return len(line), nil
}

func (l *lines) into(cfg *Config) { cfg.Logger = slog.New(slog.NewTextHandler(l, nil)) }

// count returns how many lines contain a text.
func (l *lines) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// TestWildcardInTheOwnLine: every server has a wildcard in its own line, as in many
// containers. Raft's configuration and the membership have the addresses from the other
// servers' files, whichever server leads, and with servers added and removed.
func TestWildcardInTheOwnLine(t *testing.T) {
	for _, host := range cost.InShort([]string{"0.0.0.0"}, []string{"0.0.0.0", "[::]"}) {
		t.Run(host, func(t *testing.T) { inBubble(t, func(t *testing.T) { wildcards(t, host) }) })
	}
}

func wildcards(t *testing.T, host string) {
	c, log := newCluster(t, 3), &lines{}
	start := func(id uint64, list []membership.Member) {
		c.start(id, log.into, func(cfg *Config) {
			cfg.Members = slices.Clone(list)
			own := slices.IndexFunc(list, func(m membership.Member) bool { return m.ID == id })
			cfg.Members[own].QuorumAddr, cfg.Members[own].ElectionAddr = host+":2888", host+":3888"
		})
	}
	for id := uint64(1); id <= 3; id++ {
		start(id, c.list)
	}
	for _, r := range c.rigs {
		r.awaitServed()
	}
	text := ""
	for range 3 { // all or most servers lead once
		_, r := c.leader()
		time.Sleep(3 * time.Second)
		for id, addr := range raftAddrs(r) {
			if addr != hostOf(id)+":2888" {
				t.Errorf("server %d is at %q in Raft's configuration", id, addr)
			}
		}
		if now := r.configText(); now != text && text != "" || strings.Contains(now, "=0.0.0.0") || strings.Contains(now, "[::]") {
			t.Errorf("the membership %q, was %q", now, text)
		}
		text = r.configText()
		if err := r.peers.Transfer(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.eventually("another leader", func() bool { _, next := c.leader(); return next != r })
	}
	start(4, append(slices.Clone(c.list), memberAt(4)))
	time.Sleep(time.Second)
	r := c.rigs[1]
	s := r.attach(time.Hour)
	for _, q := range []command.Command{reconfigure(s, strings.Replace(serverLine(4), "s4", "0.0.0.0", 1), "", "", -1), reconfigure(s, "", "3", "", -1), reconfigure(s, serverLine(3), "", "", -1)} {
		if o := r.do(q); o.code != proto.Ok {
			t.Fatalf("%+v", o)
		}
		time.Sleep(4 * time.Second)
	}
	c.awaitIDs("1,2,3,4 voting 1,2,3,4 others ")
	c.rigs[4].awaitServed()
	_, lead := c.leader()
	for id, addr := range raftAddrs(lead) {
		if addr != hostOf(id)+":2888" {
			t.Errorf("server %d is at %q in Raft's configuration", id, addr)
		}
	}
	if n := log.count("could not be changed"); n != 0 {
		t.Errorf("%d changes failed", n)
	}
	c.settled()
}
