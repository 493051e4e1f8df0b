package raftfsm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/exchange"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/tests/safety/hostile"
	"github.com/zkgo/zkgo/tree"
)

// numbered returns n lines of observers from server first on.
func numbered(first, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("server.%d=h%d:28:38:observer;21", first+i, first+i))
	}
	return strings.Join(all, ",")
}

// reconfigMachine returns a machine with a membership of three servers.
func reconfigMachine(t *testing.T) *apply.Machine {
	t.Helper()
	r := newReplica(t)
	l := newLeader(5, command.FlagConfig)
	l.start.Config = []byte("server.1=a:1:2:participant;0.0.0.0:3\nserver.2=b:1:2:participant;0.0.0.0:3\nserver.3=c:1:2:participant;0.0.0.0:3\nversion=0")
	r.mustFeed(t, l.begin())
	return r.Machine
}

// verdict returns the code that applying a reconfig gives.
func verdict(m *apply.Machine, q *proto.ReconfigRequest, ids ...proto.ID) proto.Code {
	policy := tree.ReconfigEnabled
	next, code := m.CheckReconfig(q, policy, ids)
	if code == proto.Ok {
		code = m.MayReconfig(next, policy, ids)
	}
	return code
}

// TestReconfigIsBounded: a reconfig with too many servers or too much text is refused
// before it is parsed, with NoAuth for a client without permission.
func TestReconfigIsBounded(t *testing.T) {
	t.Parallel()
	m := reconfigMachine(t)
	again := strings.Repeat("server.4=d:1:2;3,", membership.MaxServers)
	spaced := strings.Repeat(" ", membership.MaxListBytes)
	null := proto.NullString
	for _, tt := range []struct {
		name                       string
		joining, leaving, members  string
		version                    int64
		allowed, withoutPermission proto.Code
	}{
		{"another version", numbered(10, 5000), null, null, 77, proto.ErrBadVersion, proto.ErrBadVersion},
		{"syntax", "nonsense", null, null, -1, proto.ErrBadArguments, proto.ErrBadArguments},
		{"joining", numbered(10, 5000) + ",nonsense", null, null, -1, proto.ErrBadArguments, proto.ErrNoAuth},
		{"leaving", null, strings.Repeat("9,", 300) + "x", null, -1, proto.ErrBadArguments, proto.ErrNoAuth},
		{"members", null, null, numbered(10, 5000) + ",nonsense", -1, proto.ErrBadArguments, proto.ErrNoAuth},
		{"members in lines", null, null, strings.ReplaceAll(numbered(10, 300), ",", "\n") + "\nnonsense", -1, proto.ErrBadArguments, proto.ErrNoAuth},
		{"text", "server.4=d:1:2;3" + spaced, null, null, -1, proto.ErrBadArguments, proto.ErrNoAuth},
		{"all that there may be", again, null, null, -1, proto.Ok, proto.ErrNoAuth},
		{"one more", again + "server.4=d:1:2;3", null, null, -1, proto.ErrBadArguments, proto.ErrNoAuth},
	} {
		q := &proto.ReconfigRequest{Joining: tt.joining, Leaving: tt.leaving, NewMembers: tt.members, CurConfigID: tt.version}
		if got := verdict(m, q, proto.ID{Scheme: "super", ID: "super:x"}); got != tt.allowed {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.allowed)
		}
		if got := verdict(m, q, proto.ID{Scheme: "ip", ID: "1.2.3.4"}); got != tt.withoutPermission {
			t.Errorf("%s without permission: %v, want %v", tt.name, got, tt.withoutPermission)
		}
	}
}

// TestReconfigIsLinear: the work for a reconfig doesn't grow with the pairs of its servers.
func TestReconfigIsLinear(t *testing.T) {
	m := reconfigMachine(t)
	q := &proto.ReconfigRequest{Joining: numbered(10, membership.MaxServers-4), Leaving: proto.NullString, NewMembers: proto.NullString, CurConfigID: -1}
	allocs := testing.AllocsPerRun(1, func() {
		if _, code := m.CheckReconfig(q, tree.ReconfigEnabled, nil); code != proto.Ok && code != proto.ErrBadArguments {
			t.Errorf("%v", code)
		}
	})
	if allocs > 100*membership.MaxServers {
		t.Errorf("%v allocations", allocs)
	}
}

// TestListBounds: a list with too many or too long parts is refused, wherever it comes
// from, and so is a reconfig if its text would read differently.
func TestListBounds(t *testing.T) {
	t.Parallel()
	host := strings.Repeat("h", membership.MaxHost)
	addresses := strings.TrimSuffix(strings.Repeat("a:1:2|", membership.MaxServerAddresses), "|")
	for _, tt := range []struct{ list, want string }{
		{strings.ReplaceAll(numbered(0, membership.MaxServers), ",", "\n"), ""},
		{strings.ReplaceAll(numbered(0, membership.MaxServers+1), ",", "\n"), "a list of more than 256 servers"},
		{"server.1=" + host + ":1:2;" + host + ":3", ""},
		{"server.1=" + host + "h:1:2", "a host of 256 bytes"},
		{"server.1=[" + host + "h]:1:2", "a host of 256 bytes"},
		{"server.1=a:1:2;" + host + "h:3", "is not [host:]clientPort"},
		{"server.1=" + addresses, ""},
		{"server.1=" + addresses + "|a:1:2", "server 1 has 17 addresses"},
		{"server.1=" + strings.Repeat("x", membership.MaxLine), "a line of"},
		{"server.1=a:000001:2", "is not a port"},
		{"server.1=[[a]:1:2", "bad brackets"},
	} {
		if _, err := membership.Parse([]byte(tt.list)); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.80q: %v, want %q", tt.list, err, tt.want)
		}
	}
	var members []membership.Member
	for id := range uint64(membership.MaxServers) {
		members = append(members, memberAt(id))
	}
	if err := membership.Check(members); err != nil {
		t.Error(err)
	}
	if err := membership.Check(append(slices.Clone(members), memberAt(membership.MaxServers))); err == nil || !strings.Contains(err.Error(), "more than 256 servers") {
		t.Errorf("257 servers: %v", err)
	}
	for i := range members {
		members[i].ConfigNodeTxt = fmt.Sprintf("server.%d=%s", i, strings.ReplaceAll(addresses, "a", host))
	}
	if err := membership.Check(members); err == nil || !strings.Contains(err.Error(), "at most 262144") {
		t.Errorf("a long list: %v", err)
	}
	q := &proto.ReconfigRequest{Joining: "server.4=x\nserver.5:1:2;3", Leaving: proto.NullString, NewMembers: proto.NullString, CurConfigID: -1}
	if got := verdict(reconfigMachine(t), q, proto.ID{Scheme: "super", ID: "super:x"}); got != proto.ErrBadArguments {
		t.Errorf("a host with a line break: %v", got)
	}
}

// TestLongReconfigThroughAFollower: the client gets the answer at once, although the
// leader can't be asked with so much text. A client without permission writes nothing
// into the leader's log file.
func TestLongReconfigThroughAFollower(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, log := newCluster(t, 3), &lines{}
		for id := uint64(1); id <= 3; id++ {
			c.start(id, log.into)
		}
		_, r := c.follower()
		s := r.attach(time.Minute)
		long := reconfigure(s, numbered(10, 30000), "", "", -1)
		began := time.Now()
		if o := r.do(long); o.code != proto.ErrBadArguments {
			t.Errorf("%+v", o)
		}
		long.IDs = []proto.ID{{Scheme: "ip", ID: "1.2.3.4"}}
		if o := r.do(long); o.code != proto.ErrNoAuth {
			t.Errorf("without permission: %+v", o)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
		away := reconfigure(s, "", "", serverLine(7)+","+serverLine(8)+","+serverLine(9), -1)
		for _, said := range []int{1, 1} {
			if o := r.do(away); o.code != proto.ErrNewConfigNoQuorum {
				t.Errorf("%+v", o)
			}
			if n := log.count("rejecting a reconfig"); n != said {
				t.Errorf("said %d times, want %d", n, said)
			}
			away.IDs = long.IDs
		}
		c.settled()
	})
}

// TestStrangersProbesAreForgotten: servers keep neither long probes of a caller that has
// proved nothing, nor its list. The caller still learns how to be added.
func TestStrangersProbesAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.startAll()
		p, err := hostile.New(c.net.Host("x"), "x:1", "9.5", quorum.ClusterID{}, rand.New(rand.NewPCG(1, 2)))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		send := func(to uint64, q bootstrap.Probe) bootstrap.Answer {
			t.Helper()
			var b bytes.Buffer
			if err := exchange.Write(&b, &bootstrap.Question{Probe: &q}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			got := p.Send(ctx, quorum.Probe, memberAt(to).QuorumAddr, "", b.Bytes())
			var a bootstrap.Answer
			if len(got) < 4 || json.Unmarshal(got[4:], &a) != nil {
				t.Fatalf("answer %q", got)
			}
			return a
		}
		lead, leader := c.leader()
		follower, _ := c.follower()
		q := bootstrap.Probe{ID: 9, Addr: "0.0.0.0:1", Phase: bootstrap.PhaseEmpty, Level: command.Level, Token: 1}
		for _, to := range []uint64{lead, follower} {
			q.As = raft.ServerID("9.5" + strings.Repeat("5", 100000))
			if a := send(to, q); a.Error == "" || a.Probe != nil {
				t.Errorf("server %d answers a long ServerID with %+v", to, a)
			}
			q.As = membership.JoinerID(9, 5)
			if a := send(to, q); a.Probe == nil {
				t.Errorf("server %d: %+v", to, a)
			}
			e := c.rigs[to].member()
			if long := e.Addresses(raft.ServerID("9.5" + strings.Repeat("5", 100000))); len(long) != 0 || len(e.Addresses(membership.JoinerID(9, 5))) != 1 {
				t.Errorf("server %d remembers callers at %v and %v", to, long, e.Addresses(membership.JoinerID(9, 5)))
			}
		}
		q.Join, q.Addr, q.List = true, "s9:2888", serverLine(9)+"\n"+strings.ReplaceAll(numbered(10, 200), ",", "\n")
		a := send(lead, q)
		if a.Probe == nil || !strings.Contains(a.Probe.Refusal, "reconfig -add "+serverLine(9)) {
			t.Errorf("a stranger is told %+v", a)
		}
		e := leader.member()
		if e.ListOf(9) != nil {
			t.Error("the leader keeps a stranger's list")
		}
	})
}
