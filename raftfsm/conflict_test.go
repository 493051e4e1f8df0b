package raftfsm

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// three are servers on one host.
const three = "server.1=127.0.0.1:2881:3881:participant;127.0.0.1:2181\nserver.2=127.0.0.1:2882:3882:participant;127.0.0.1:2182\n" +
	"server.3=127.0.0.1:2883:3883:participant;127.0.0.1:2183"

// TestReconfigNeedsFreeAddresses: a list that the servers couldn't listen with is refused,
// whatever kind of reconfig asks for it, and so is one that gives a server the address of
// another one before that has moved away. What the list had before counts only if it
// conflicts with something new.
func TestReconfigNeedsFreeAddresses(t *testing.T) {
	t.Parallel()
	const (
		apart  = "server.1=a:1:2;5\nserver.2=b:1:2;5\nserver.3=c:1:2;5"
		shared = "server.1=127.0.0.1:1:2;5\nserver.2=127.0.0.1:3:4;5\nserver.3=127.0.0.1:6:7;5" // ports forwarded to three machines
	)
	for _, tt := range []struct{ now, joining, leaving, members, why string }{
		{now: three, joining: "4=127.0.0.1:2884:3884;127.0.0.1:2184"},
		{now: three, joining: "4=127.0.0.1:2881:3884;127.0.0.1:2184", why: "server.1 and server.4 have the same quorum address 127.0.0.1:2881"},
		{now: three, joining: "4=[::ffff:127.0.0.1]:02881:3884;127.0.0.1:2184", why: "the same quorum address 127.0.0.1:2881"},
		{now: three, joining: "4=localhost:2881:3884;127.0.0.1:2184"}, // a name may be any host
		{now: three, joining: "4=127.0.0.1:2884:3884;127.0.0.1:2181", why: "client address of server.1"},
		{now: three, joining: "4=127.0.0.1:2884:3884;2181", why: "client address of server.1"},
		{now: three, joining: "4=127.0.0.1:2884:3884;127.0.0.1:2881", why: "quorum address of server.1"},
		{now: three, joining: "1=127.0.0.1:2881:3881;127.0.0.1:2881", why: "the port for clients is the one for the other servers"},
		{now: three, joining: "1=127.0.0.1:2881:3881;2881", why: "the port for clients"},
		{now: three, joining: "1=127.0.0.1:2881:3881|127.0.0.2:2891:3891;2891", why: "the port for clients"},
		{now: three, joining: "1=127.0.0.1:2881:3881|127.0.0.1:2881:3891;2191", why: "127.0.0.1:2881 twice"},
		{now: three, members: strings.Replace(three, "127.0.0.1:2881", "127.0.0.1:2882", 1), why: "the same quorum address 127.0.0.1:2882"},
		{now: three, members: strings.Replace(three, ";127.0.0.1:2181", ";127.0.0.1:2182", 1), why: "client address"},
		{now: three, members: three},
		// The addresses that the servers have now.
		{now: three, joining: "1=127.0.0.1:2881:3881;127.0.0.1:2182,2=127.0.0.1:2882:3882;127.0.0.1:2181", why: "server.2 now: give server.2 another one first"},
		{now: three, joining: "1=127.0.0.1:2882:3881;127.0.0.1:2181,2=127.0.0.1:2881:3882;127.0.0.1:2182", why: "is the quorum address of server.2 now"},
		{now: three, joining: "1=127.0.0.1:2181:3881;127.0.0.1:2881", why: "is the client address of server.1 now"},
		{now: three, joining: "1=127.0.0.1:2881:3881;127.0.0.1:2182,2=127.0.0.1:2882:3882;127.0.0.1:2192", why: "server.2 now"},
		{now: three, joining: "1=127.0.0.1:2883:3881;127.0.0.1:2183", leaving: "3"},
		{now: three, joining: "3=127.0.0.1:2893:3893;127.0.0.1:2193,4=127.0.0.1:2883:3883;127.0.0.1:2183"},
		{now: apart, members: strings.NewReplacer("=a", "=b", "=b", "=a").Replace(apart)}, // the servers change places with their machines
		{now: apart, joining: "1=a:1:2:observer;5"},
		{now: apart, joining: "1=a:1:2;6"},
		// A server keeps its port and listens at another set of addresses.
		{now: three, joining: "1=127.0.0.1:2881:3881;2181"},
		{now: three, members: strings.ReplaceAll(three, ";127.0.0.1:", ";")},
		{now: strings.ReplaceAll(three, ";127.0.0.1:", ";"), members: three},
		{now: three, joining: "1=127.0.0.1:2881:3881;0.0.0.0:2182", why: "client address of server.2"},
		// Hosts that no server starts with.
		{now: apart, joining: "4=d\u00fc:1:2;5", why: "is no host"},
		{now: apart, joining: "4=d:1:2;\"d\":5", why: "is no host"},
		// A list that conflicts already.
		{now: shared, leaving: "3"},
		{now: shared, joining: "1=127.0.0.1:1:2:observer;5"},
		{now: shared, joining: "1=127.0.0.1:8:2;5"},
		{now: shared, joining: "4=127.0.0.1:8:9;5"},
		{now: shared, joining: "4=127.0.0.1:8:9;127.0.0.1:5", why: "client address"},
		{now: shared, joining: "4=127.0.0.1:8:9;6", why: "quorum address of server.3"},
	} {
		now, err := parseMembership([]byte(tt.now))
		if err != nil {
			t.Fatal(err)
		}
		null := func(s string) string {
			if s == "" {
				return proto.NullString
			}
			return s
		}
		q := &proto.ReconfigRequest{Joining: null(tt.joining), Leaving: null(tt.leaving), NewMembers: null(tt.members), CurConfigID: -1}
		want := proto.Ok
		if tt.why != "" {
			want = proto.ErrBadArguments
		}
		policy := tree.MultiAddress
		next, code := now.next(q, policy)
		if code != want {
			t.Errorf("%+v: %v, want %v", tt, code, want)
		}
		if code == proto.Ok {
			if err := SameAddress(next.members); err != nil {
				t.Errorf("%+v: no server starts: %v", tt, err)
			}
			continue
		}
		if asked, code := now.asked(q, policy); code == proto.Ok {
			if err := now.conflict(asked); err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("%+v: %v", tt, err)
			}
		} else {
			t.Errorf("%+v: %v without the check of the addresses", tt, code)
		}
	}
}

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
		if n := log.count("the servers couldn't listen at the addresses"); n != 2 {
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
				c.awaitLevel(namedLevel)
				own := memberAt(4)
				own.QuorumAddr = host + ":2888"
				c.start(4, func(cfg *Config) { cfg.Members = append(append([]Member{}, c.list...), own) })
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

// TestUnreachableJoiner adds a running server at a host where it isn't. The reconfig is
// carried out as if the server were down, and the log says why it is missing.
func TestUnreachableJoiner(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, 3)
		log := &lines{}
		c.startAll(log.into)
		c.start(4, func(cfg *Config) { cfg.Members = append(append([]Member{}, c.list...), memberAt(4)) })
		time.Sleep(2 * time.Second)
		r := c.rigs[1]
		start := time.Now()
		o := r.do(reconfigure(r.attach(time.Hour), strings.Replace(serverLine(4), "s4:", "nowhere:", 1), "", "", -1))
		if took := time.Since(start); o.code != proto.Ok || took > 3*absentAfter {
			t.Fatalf("%+v after %v", o, took)
		}
		c.awaitIDs("1,2,3,4 voting 1,2,3 others ")
		time.Sleep(20 * time.Second)
		if n := log.count("cannot be reached"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		if o := r.do(reconfigure(r.attach(time.Hour), serverLine(4), "", "", -1)); o.code != proto.Ok {
			t.Fatalf("%+v", o)
		}
		c.awaitIDs("1,2,3,4 voting 1,2,3,4 others ")
	})
}

// TestClientAddressFollowsTheFile: a server that starts with another client address in its
// file listens there, so the membership has it, unless a reconfig has named the line.
func TestClientAddressFollowsTheFile(t *testing.T) {
	for _, named := range []bool{false, true} {
		t.Run(fmt.Sprintf("named=%t", named), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCluster(t, 3).onDisk()
				c.startAll()
				c.awaitLevel(namedLevel)
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
					cfg.Members = append([]Member{}, c.list...)
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
