package raftfsm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// votersOf returns the voters in Raft's configuration, as r has it.
func (c *cluster) votersOf(r *rig) (ids []uint64) {
	for _, s := range r.replica.Raft().GetConfiguration().Configuration().Servers {
		if s.Suffrage == raft.Voter {
			ids = append(ids, membership.ServerOf(s.ID))
		}
	}
	slices.Sort(ids)
	return ids
}

// observerLine returns the line that adds an observer in a reconfig.
func observerLine(id uint64) string {
	return strings.Replace(serverLine(id), "participant", "observer", 1)
}

// bareMajority starts n servers, kills the given ones, and returns the leader and the
// remaining followers by id.
func bareMajority(t *testing.T, n int, kill []uint64, wait time.Duration) (c *cluster, lead uint64, rest []uint64) {
	c = newCluster(t, n)
	c.startAll()
	for _, id := range kill {
		c.kill(id)
	}
	c.eventually("a leader that a majority follows", func() bool {
		lead, _ = c.leader()
		served := 0
		for _, r := range c.rigs {
			if s := r.Status(); s.Serving && s.Leader == lead {
				served++
			}
		}
		return served > n/2
	})
	time.Sleep(wait)
	for id := range c.rigs {
		if id != lead {
			rest = append(rest, id)
		}
	}
	slices.Sort(rest)
	return c, lead, rest
}

// TestReconfigOfABareMajority removes votes of live servers while only a bare majority of
// the voters is up. The servers that are down lose their votes first, whether or not the
// leader has had time to notice that they are down.
func TestReconfigOfABareMajority(t *testing.T) {
	type lines func(lead uint64, rest []uint64) string
	join := func(l ...string) string { return strings.Join(l, ",") }
	for _, tt := range []struct {
		name string
		n    int
		kill []uint64
		to   lines
		want proto.Code
	}{
		{"demote", 5, []uint64{4, 5}, func(l uint64, r []uint64) string {
			return join(serverLine(l), serverLine(r[1]), observerLine(r[0]))
		}, proto.Ok},
		{"demote the leader", 5, []uint64{4, 5}, func(l uint64, r []uint64) string {
			return join(observerLine(l), serverLine(r[1]), serverLine(r[0]))
		}, proto.Ok},
		{"remove", 5, []uint64{4, 5}, func(l uint64, r []uint64) string { return join(serverLine(l), serverLine(r[1])) }, proto.Ok},
		{"remove the leader", 5, []uint64{4, 5}, func(_ uint64, r []uint64) string { return join(serverLine(r[0]), serverLine(r[1])) }, proto.Ok},
		{"keep a dead one", 5, []uint64{4, 5}, func(l uint64, r []uint64) string {
			return join(serverLine(l), serverLine(r[1]), serverLine(4))
		}, proto.Ok},
		{"seven", 7, []uint64{3, 6, 7}, func(l uint64, r []uint64) string {
			return join(serverLine(l), serverLine(r[0]), serverLine(r[1]), serverLine(3), observerLine(r[2]))
		}, proto.Ok},
		{"no majority after it", 5, []uint64{4, 5}, func(l uint64, _ []uint64) string {
			return join(serverLine(l), serverLine(4), serverLine(5))
		}, proto.ErrNewConfigNoQuorum},
	} {
		for _, wait := range []time.Duration{0, 3 * time.Second} {
			t.Run(fmt.Sprint(tt.name, " after ", wait), func(t *testing.T) {
				if testing.Short() && (wait > 0 || tt.name != "remove the leader" && tt.name != "no majority after it") {
					t.Skip("not with -short")
				}
				inBubble(t, func(t *testing.T) {
					c, lead, rest := bareMajority(t, tt.n, tt.kill, wait)
					reconfiguredAtOnce(t, c, rest[1], tt.to(lead, rest), tt.want)
				})
			})
		}
	}
}

// reconfiguredAtOnce asks a server for a whole membership. It checks the answer, its
// delay, and that all remaining servers continue.
func reconfiguredAtOnce(t *testing.T, c *cluster, id uint64, members string, want proto.Code) {
	t.Helper()
	r := c.rigs[id]
	s := r.attach(time.Minute)
	before, config := r.zxid(), r.configText()
	_, lead := c.leader()
	voters := c.votersOf(lead)
	begin := time.Now()
	o := r.do(reconfigure(s, "", "", members, -1))
	if took := time.Since(begin); o.code != want || took > 8*time.Second {
		t.Fatalf("%+v after %v, want %v", o, took, want)
	}
	if want != proto.Ok {
		if o.events != 0 || o.zxid != before+1 || r.configText() != config || !slices.Equal(c.votersOf(lead), voters) {
			t.Errorf("a refused reconfig has changed something: %+v, config %q, voters %v", o, r.configText(), c.votersOf(lead))
		}
	}
	begin = time.Now()
	if o := c.sure(r, &s, func(s session.Session) command.Command { return create(s, "/after", 0) }); o.code != proto.Ok {
		t.Fatalf("%+v", o)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("no write for %v", took)
	}
	if want != proto.Ok {
		time.Sleep(10 * time.Second)
		if _, lead := c.leader(); !slices.Equal(c.votersOf(lead), voters) {
			t.Errorf("voters %v, before %v", c.votersOf(lead), voters)
		}
	}
}

// TestServerDiesDuringAReconfig kills a server after each step of a reconfig. Either
// the reconfig is carried out, or its answer is NewConfigNoQuorum and the membership is
// the old one. As long as the last configuration has a majority, writes continue.
func TestServerDiesDuringAReconfig(t *testing.T) {
	for after := 1; after <= 4; after++ {
		if testing.Short() && after != 2 {
			continue
		}
		for _, victim := range cost.InShort([]uint64{2}, []uint64{1, 2, 4}) {
			t.Run(fmt.Sprintf("server %d after step %d", victim, after), func(t *testing.T) {
				inBubble(t, func(t *testing.T) { serverDies(t, after, victim) })
			})
		}
	}
}

// serverDies demotes 1 and 2 of five servers and adds 6 in their place.
func serverDies(t *testing.T, after int, victim uint64) {
	log := &steps{after: after, reached: make(chan struct{})}
	c := newCluster(t, 5)
	for id := uint64(1); id <= 5; id++ {
		c.start(id, log.into)
	}
	for _, r := range c.rigs {
		r.awaitServed()
	}
	c.start(6, func(cfg *Config) { cfg.Members = append(slices.Clone(c.list), memberAt(6)) })
	time.Sleep(time.Second)
	r := c.rigs[3]
	s := r.attach(time.Minute)
	answer := make(chan outcome, 1)
	go func() {
		cmd := reconfigure(s, serverLine(6)+","+observerLine(1)+","+observerLine(2), "", "", -1)
		cmd.Waiter = waiter(answer)
		_ = r.Propose(&cmd)
	}()
	var o outcome
	select {
	case <-log.reached:
		c.kill(victim)
		o = r.get(answer)
	case o = <-answer:
		t.Logf("the reconfig takes fewer than %d steps", after)
		c.kill(victim)
	}
	switch text := r.configText(); o.code {
	case proto.Ok:
		if !strings.Contains(text, "server.6=") || strings.Count(text, "observer") != 2 {
			t.Errorf("answered with success, and the membership is %q", text)
		}
	case proto.ErrNewConfigNoQuorum:
		if strings.Contains(text, "server.6=") || strings.Contains(text, "observer") {
			t.Errorf("refused, and the membership is %q", text)
		}
	default:
		t.Errorf("%+v", o)
	}
	begin := time.Now()
	if o := c.sure(r, &s, func(s session.Session) command.Command { return create(s, "/after", 0) }); o.code != proto.Ok {
		t.Fatalf("%+v", o)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("no write for %v", took)
	}
}
