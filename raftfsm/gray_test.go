package raftfsm

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/session"
)

// grayBound returns the time within which every server must serve again after the network
// has forgotten connections: the smaller of syncLimit × tickTime and 5 s.
func grayBound(c *cluster) time.Duration {
	for _, r := range c.rigs {
		return min(time.Duration(r.Node.cfg.SyncLimit)*r.Node.cfg.TickTime, ensemble.ServiceBound)
	}
	c.t.Fatal("no server")
	return 0
}

// writesEverywhere writes through every server and returns the duration of the slowest
// write. Sessions that lose their connections reconnect immediately.
func (c *cluster) writesEverywhere(sessions map[uint64]*session.Session, path string) (slowest time.Duration) {
	c.t.Helper()
	for id, r := range c.rigs {
		if sessions[id] == nil {
			s := c.surelyAttached(r, time.Hour)
			sessions[id] = &s
		}
	}
	began := time.Now()
	done := make(chan error, len(c.rigs))
	for id, r := range c.rigs {
		go func() {
			at := fmt.Sprintf("%s-%d", path, id)
			o := c.sure(r, sessions[id], func(s session.Session) command.Command { return create(s, at, 0) })
			if o.code != proto.Ok && o.code != proto.ErrNodeExists {
				done <- fmt.Errorf("%s: %v", at, o.code)
				return
			}
			done <- nil
		}()
	}
	for range c.rigs {
		if err := <-done; err != nil {
			c.t.Error(err)
		}
	}
	return time.Since(began)
}

// TestForgottenConnections makes the network forget established connections, like a
// firewall that has lost its state, while new connections work: single connections, those
// between two servers, and all of one server. Writes through every server succeed within
// the bound.
func TestForgottenConnections(t *testing.T) {
	t.Parallel()
	ticks := []time.Duration{2 * time.Second, 200 * time.Millisecond}
	if testing.Short() {
		ticks = ticks[:1]
	}
	for _, tick := range ticks {
		t.Run(tick.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { testForgotten(t, tick) })
		})
	}
}

func testForgotten(t *testing.T, tick time.Duration) {
	c := newCluster(t, 3)
	for _, m := range c.list {
		c.start(m.ID, func(cfg *Config) { cfg.TickTime = tick })
	}
	sessions := make(map[uint64]*session.Session)
	c.writesEverywhere(sessions, "/before")
	round, forgotten := 0, 0
	check := func(what string, match func(dialer, acceptor string) bool) {
		t.Helper()
		time.Sleep(10 * time.Second)
		n := c.net.Forget(match)
		forgotten += n
		round++
		if took := c.writesEverywhere(sessions, fmt.Sprintf("/round-%d", round)); took > grayBound(c) {
			t.Errorf("%s: %d connections forgotten, the writes took %v", what, n, took)
		}
		c.eventually("every server serves", func() bool {
			for _, r := range c.rigs {
				if !r.Status().Serving {
					return false
				}
			}
			return true
		})
	}
	lead, _ := c.leader()
	leader := hostOf(lead)
	for _, m := range c.list {
		h := hostOf(m.ID)
		if h == leader {
			continue
		}
		for nth := range 6 { // one connection after the other, whatever it is for
			i := 0
			check(fmt.Sprintf("connection %d between the leader and %s", nth, h), func(d, a string) bool {
				if d == leader && a == h || d == h && a == leader {
					i++
					return i == nth+1
				}
				return false
			})
		}
		check("those that "+h+" opened to the leader", func(d, a string) bool { return d == h && a == leader })
		check("those that the leader opened to "+h, func(d, a string) bool { return a == h && d == leader })
	}
	check("those that the followers opened", func(d, a string) bool { return a == leader && strings.HasPrefix(d, "s") })
	check("those that the leader opened", func(d, _ string) bool { return d == leader })
	for _, m := range c.list {
		h := hostOf(m.ID)
		check("all of "+h, func(d, a string) bool { return d == h || a == h })
	}
	check("all", func(string, string) bool { return true })
	if forgotten < 30 {
		t.Errorf("only %d connections were forgotten", forgotten)
	}
}

// TestForgottenHeartbeats forgets the connections that the leader has opened. It replaces
// them before the followers give it up, also with short ticks.
func TestForgottenHeartbeats(t *testing.T) {
	t.Parallel()
	ticks := []time.Duration{300 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond}
	if testing.Short() {
		ticks = ticks[:1]
	}
	for _, tick := range ticks {
		t.Run(tick.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 3)
				for _, m := range c.list {
					c.start(m.ID, func(cfg *Config) { cfg.TickTime = tick })
				}
				c.writesEverywhere(make(map[uint64]*session.Session), "/before")
				lead, _ := c.leader()
				for range 20 {
					time.Sleep(1010 * time.Millisecond) // another moment between two heartbeats each time
					if n := c.net.Forget(func(d, _ string) bool { return d == hostOf(lead) }); n == 0 {
						t.Fatal("no connections were forgotten")
					}
					for range 200 {
						time.Sleep(5 * time.Millisecond)
						for id, r := range c.rigs {
							if r.Status().Role == Looking {
								t.Fatalf("server %d has given up the leader", id)
							}
						}
					}
				}
			})
		})
	}
}

// large returns a write that doesn't fit in a packet.
func large(s session.Session, path string) command.Command {
	return write(s, proto.OpCreate2, &proto.CreateRequest{Path: path, Data: make([]byte, 8000), ACL: proto.OpenACL()})
}

// TestFollowerWhoseCommandsDoNotArrive loses large packets from a follower to the leader.
// Once a packet is lost, the server stops following. It reports the reason, accepts no
// new clients, and doesn't serve again before packets arrive.
func TestFollowerWhoseCommandsDoNotArrive(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.startAll()
		lead, _ := c.leader()
		id, f := c.follower()
		s := f.attach(time.Hour)
		c.net.Lose(hostOf(id), hostOf(lead), 1400)
		time.Sleep(10 * time.Second)
		if !f.Status().Serving {
			t.Fatal("it does not serve, and nothing has been lost yet")
		}
		f.send(large(s, "/large"))
		began := time.Now()
		f.recorder.wait(t, "that it does not follow", func() bool { return f.Status().Role == Looking })
		if took := time.Since(began); took > 4*time.Second { // 2 s for a second attempt
			t.Errorf("it took %v to stop following", took)
		}
		if s := f.Status(); s.Serving || !strings.Contains(s.Reason, "commands do not reach the leader") {
			t.Errorf("%+v", s)
		}
		for range 200 {
			time.Sleep(100 * time.Millisecond)
			if f.Status().Serving {
				t.Fatal("it serves again")
			}
		}
		c.net.Heal(hostOf(id), hostOf(lead))
		began = time.Now()
		f.awaitServed()
		if took := time.Since(began); took > 2500*time.Millisecond {
			t.Errorf("it served %v after its packets arrive again", took)
		}
		c.sure(f, &s, func(s session.Session) command.Command { return large(s, "/large") })
		c.settled()
	})
}

// TestLeaderLosesLargePackets: a leader's heartbeats arrive, but its entries don't.
// Another server becomes leader, accepts writes within six seconds, and stays leader.
// Commands in flight are lost, and Lost is called.
func TestLeaderLosesLargePackets(t *testing.T) {
	t.Parallel()
	sizes := []int{120, 165, 200, 1400}
	if testing.Short() {
		sizes = sizes[1:2]
	}
	for _, size := range sizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 3)
				for _, m := range c.list {
					c.start(m.ID, func(cfg *Config) { cfg.TickTime = 2 * time.Second })
				}
				sessions := make(map[uint64]*session.Session)
				c.writesEverywhere(sessions, "/before")
				lead, l := c.leader()
				for id := range c.rigs {
					if id != lead {
						c.net.Lose(hostOf(lead), hostOf(id), size)
					}
				}
				began := time.Now()
				lost := l.lostCount()
				answer := l.send(large(*sessions[lead], "/in-flight"))
				for id, r := range c.rigs {
					if id == lead {
						continue
					}
					c.sure(r, sessions[id], func(s session.Session) command.Command { return large(s, fmt.Sprintf("/large-%d", id)) })
				}
				if took := time.Since(began); took > 6*time.Second {
					t.Errorf("the others could write after %v", took)
				}
				c.eventually("what was in flight is given up", func() bool { return l.lostCount() > lost })
				if len(answer) > 0 {
					t.Error("what was in flight was answered")
				}
				next, r := c.leader()
				if next == lead {
					t.Fatal("the same server leads")
				}
				epoch := r.Status().Epoch
				for i := range 30 {
					time.Sleep(2 * time.Second)
					for id, r := range c.rigs {
						if id != lead {
							c.sure(r, sessions[id], func(s session.Session) command.Command { return large(s, fmt.Sprintf("/more-%d-%d", id, i)) })
						}
					}
				}
				if now := r.Status().Epoch; now != epoch {
					t.Errorf("%d more elections", now-epoch)
				}
				for id := range c.rigs {
					c.net.Heal(hostOf(lead), hostOf(id))
				}
				l.awaitServed()
				c.settled()
			})
		})
	}
}

// TestLeaderLosesHeartbeatsToo loses a leader's packets above a size close to the size
// of its vote requests. Its heartbeats are lost, too, while vote requests arrive in some
// cases and not in others. The leader has an entry that the others lack. It must not win
// elections repeatedly, nor keep raising the term as a candidate: another server must
// lead. The leader's ServerID is long, because the server is on its second disk.
func TestLeaderLosesHeartbeatsToo(t *testing.T) {
	t.Parallel()
	for size, bound := range map[int]time.Duration{
		180: 8 * time.Second, 188: 8 * time.Second, // vote requests are lost
		198: 4 * time.Second, 200: 4 * time.Second, 201: 4 * time.Second, // vote requests arrive
	} {
		if testing.Short() && size != 188 && size != 200 {
			continue
		}
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { testHeartbeatsLost(t, size, bound) })
		})
	}
}

func testHeartbeatsLost(t *testing.T, size int, bound time.Duration) {
	c := newCluster(t, 3).onDisk()
	tune := func(cfg *Config) { cfg.TickTime, cfg.SyncLimit = 500*time.Millisecond, 5 }
	for _, m := range c.list {
		c.start(m.ID, tune)
	}
	sessions := make(map[uint64]*session.Session)
	c.writesEverywhere(sessions, "/before")
	const lead = 3
	c.kill(lead)
	c.awaitClosed(lead)
	if err := os.RemoveAll(c.dir(lead)); err != nil {
		t.Fatal(err)
	}
	l := c.start(lead, tune)
	l.awaitServed()
	for range 20 {
		time.Sleep(10 * time.Second)
		now, r := c.leader()
		if now == lead {
			break
		}
		_ = r.Transfer(t.Context())
	}
	if now, _ := c.leader(); now != lead {
		t.Fatalf("server %d leads", now)
	}
	own := c.surelyAttached(l, time.Hour)
	for id := range c.rigs {
		if id != lead {
			c.net.Lose(hostOf(lead), hostOf(id), size)
		}
	}
	began := time.Now()
	l.send(large(own, "/in-flight"))
	for id, r := range c.rigs {
		if id != lead {
			c.sureWithin(r, sessions[id], time.Minute, func(s session.Session) command.Command { return large(s, fmt.Sprintf("/large-%d", id)) })
		}
	}
	if took := time.Since(began); took > bound {
		t.Errorf("the others could write after %v, more than %v", took, bound)
	}
}

// TestBackWithinTwoSeconds kills a leader or a follower and restarts it. It serves within
// two seconds, however long it was down.
func TestBackWithinTwoSeconds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, 3).onDisk()
		c.startAll()
		absences := []time.Duration{2, 22, 25, 60}
		if testing.Short() {
			absences = absences[:2]
		}
		for round, away := range absences {
			for _, who := range []string{"leader", "follower"} {
				id, _ := c.leader()
				if who == "follower" {
					id, _ = c.follower()
				}
				c.kill(id)
				next, r := c.leader()
				s := c.surelyAttached(r, time.Hour)
				c.sure(r, &s, func(s session.Session) command.Command { return create(s, fmt.Sprintf("/%s-%d", who, round), 0) })
				time.Sleep(away * time.Second)
				c.awaitClosed(id)
				began := time.Now()
				c.start(id).awaitServed()
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("a %s that was away for %v served after %v, under server %d", who, away*time.Second, took, next)
				}
				c.settled()
			}
		}
	})
}

// TestBackAfterASilentCut partitions a follower without closing its connections. It serves
// again about a second after the partition ends.
func TestBackAfterASilentCut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.startAll()
		lengths := []time.Duration{25, 60, 120}
		if testing.Short() {
			lengths = lengths[:1]
		}
		for round, length := range lengths {
			id, f := c.follower()
			rest := []string{}
			for other := range c.rigs {
				if other != id {
					rest = append(rest, hostOf(other))
				}
			}
			c.net.Forget(func(d, a string) bool { return d == hostOf(id) || a == hostOf(id) })
			c.net.Partition([]string{hostOf(id)}, rest)
			_, l := c.leader()
			s := c.surelyAttached(l, time.Hour)
			c.sure(l, &s, func(s session.Session) command.Command { return create(s, fmt.Sprintf("/cut-%d", round), 0) })
			time.Sleep(length * time.Second)
			c.net.Rejoin([]string{hostOf(id)}, rest)
			began := time.Now()
			f.awaitServed()
			if took := time.Since(began); took > 1500*time.Millisecond {
				t.Errorf("it served %v after a cut of %v", took, length*time.Second)
			}
		}
	})
}

// TestOnlyThisServerHasLostTheLeader cuts a follower off from the leader but not from the
// other follower. There is no election that its clients could wait for, so it must not say
// so, however long the cut lasts.
func TestOnlyThisServerHasLostTheLeader(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.startAll()
		lead, _ := c.leader()
		id, f := c.follower()
		c.net.Hold(hostOf(id), hostOf(lead))
		c.net.Hold(hostOf(lead), hostOf(id))
		c.eventually("it has lost the leader", func() bool { return !f.Status().Serving })
		time.Sleep(ensemble.AnsweredFor)
		for range 300 {
			time.Sleep(200 * time.Millisecond)
			if f.Electing() {
				t.Fatalf("it expects an election, and server %d leads: %+v", lead, f.Status())
			}
		}
		if now, _ := c.leader(); now != lead {
			t.Errorf("server %d leads", now)
		}
	})
}

// TestARemovedServerExpectsNoElection removes a server. It knows why it doesn't serve, and
// doesn't let its clients wait for an election.
func TestARemovedServerExpectsNoElection(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds with the race detector; not with -short")
	}
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, 4)
		for _, m := range c.list {
			c.start(m.ID, func(cfg *Config) { cfg.SyncLimit = 30 })
		}
		id, r := c.follower()
		_, l := c.leader()
		if o := l.do(reconfigure(l.attach(time.Hour), "", fmt.Sprint(id), "", -1)); o.code != proto.Ok {
			t.Fatalf("%+v", o)
		}
		c.eventually("it knows that it has left", func() bool { return strings.Contains(r.Status().Reason, "no longer a member") })
		for range 300 {
			time.Sleep(200 * time.Millisecond)
			if s := r.Status(); r.Electing() || !strings.Contains(s.Reason, "no longer a member") {
				t.Fatalf("election %v, %+v", r.Electing(), s)
			}
		}
	})
}

// TestAJoiningVoterGivesUpADeadLeader: a server that joins has a vote before it has
// applied the membership that lists it. If the leader vanishes at that moment, the others
// can't elect a new leader until this server has given up the old one, too.
func TestAJoiningVoterGivesUpADeadLeader(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, 4)
		c.startAll()
		lead, _ := c.leader()
		for id, r := range c.rigs {
			if id == lead {
				continue
			}
			r.Tree().Lock()
			m, err := membership.ParseState(r.replica.Machine.Config)
			if err != nil {
				t.Fatal(err)
			}
			m.Members = slices.DeleteFunc(m.Members, func(m membership.Member) bool { return m.ID == id })
			r.replica.Machine.Config = m.State()
			r.Tree().Unlock()
			break
		}
		for id := range c.rigs {
			if id != lead {
				c.net.Hold(hostOf(lead), hostOf(id))
				c.net.Hold(hostOf(id), hostOf(lead))
			}
		}
		c.eventually("another server leads", func() bool {
			for id, r := range c.rigs {
				if id != lead && r.Status().Role == Leader {
					return true
				}
			}
			return false
		})
	})
}
