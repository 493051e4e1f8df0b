package raftfsm

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/cost"
	"github.com/zkgo/zkgo/tree"
)

// reconfigure returns a reconfig of a super user. Empty strings are null.
func reconfigure(s session.Session, joining, leaving, members string, from int64) command.Command {
	null := func(s string) string {
		if s == "" {
			return proto.NullString
		}
		return s
	}
	c := write(s, proto.OpReconfig, &proto.ReconfigRequest{Joining: null(joining), Leaving: null(leaving), NewMembers: null(members), CurConfigID: from})
	c.IDs = []proto.ID{{Scheme: "super", ID: "super:x"}}
	return c
}

// configText returns the text of /zookeeper/config on a server.
func (r *rig) configText() string {
	r.Tree().RLock()
	defer r.Tree().RUnlock()
	return string(r.Tree().Get(tree.ConfigPath).Data())
}

// serverLine returns the line that adds a server in a reconfig.
func serverLine(id uint64) string {
	return fmt.Sprintf("server.%d=%s:2888:3888:participant;0.0.0.0:2181", id, hostOf(id))
}

// ids returns the servers in the replicated membership, and those in Raft's
// configuration with and without a vote.
func (c *cluster) ids() string {
	_, r := c.leader()
	m, err := membership.ParseState(r.replica.Machine.Membership())
	if err != nil {
		c.t.Fatal(err)
	}
	var listed, voting, others []string
	for _, x := range m.Members {
		listed = append(listed, fmt.Sprint(x.ID))
	}
	for _, s := range r.replica.Raft().GetConfiguration().Configuration().Servers {
		if n := fmt.Sprint(membership.ServerOf(s.ID)); s.Suffrage == 0 {
			voting = append(voting, n)
		} else {
			others = append(others, n)
		}
	}
	slices.Sort(voting)
	slices.Sort(others)
	return strings.Join(listed, ",") + " voting " + strings.Join(voting, ",") + " others " + strings.Join(others, ",")
}

func (c *cluster) awaitIDs(want string) {
	c.t.Helper()
	got := ""
	c.eventually("members "+want, func() bool {
		if g := c.ids(); g != got {
			got = g
			c.t.Log(got)
		}
		return got == want
	})
}

func TestConfigText(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testConfigText)
}

func testConfigText(t *testing.T) {
	c := newCluster(t, 3)
	c.startAll()
	want := "server.1=s1:2888:3888:participant;0.0.0.0:2181\nserver.2=s2:2888:3888:participant;0.0.0.0:2181\n" +
		"server.3=s3:2888:3888:participant;0.0.0.0:2181\nversion=100000000"
	for id, r := range c.rigs {
		if got := r.configText(); got != want {
			t.Errorf("server %d: %q", id, got)
		}
	}
}

func TestReconfigVerdicts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testReconfigVerdicts)
}

func testReconfigVerdicts(t *testing.T) {
	c := newCluster(t, 3)
	c.startAll()
	_, r := c.follower()
	s := r.attach(time.Minute)
	plain := reconfigure(s, "", "", "", -1)
	plain.IDs = []proto.ID{{Scheme: "ip", ID: "1.2.3.4"}}
	tooHigh := reconfigure(s, serverLine(999), "", "", -1)
	plainTooHigh := tooHigh
	plainTooHigh.IDs = plain.IDs
	for _, tt := range []struct {
		name string
		cmd  command.Command
		want proto.Code
	}{
		{"another version", reconfigure(s, "", "3", "", 77), proto.ErrBadVersion},
		{"version before syntax", reconfigure(s, "nonsense", "", "", 77), proto.ErrBadVersion},
		{"syntax", reconfigure(s, "nonsense", "", "", -1), proto.ErrBadArguments},
		{"no client part", reconfigure(s, "server.4=s4:2888:3888", "", "", -1), proto.ErrBadArguments},
		{"leaving is no number", reconfigure(s, "", "x", "", -1), proto.ErrMarshalling},
		{"one voter", reconfigure(s, "", "1,2", "", -1), proto.ErrBadArguments},
		{"none of them runs", reconfigure(s, "", "", serverLine(7)+","+serverLine(8)+","+serverLine(9), -1), proto.ErrNewConfigNoQuorum},
		{"not allowed", plain, proto.ErrNoAuth},
		{"not allowed, before an id too high", plainTooHigh, proto.ErrNoAuth},
		{"an id too high", tooHigh, proto.ErrBadArguments},
		{"nothing to do", reconfigure(s, "", "", "", -1), proto.Ok},
	} {
		before := r.zxid()
		o := r.do(tt.cmd)
		if o.code != tt.want || o.zxid != before+1 || o.op != proto.OpReconfig || o.kind != command.KindRequest {
			t.Errorf("%s: %+v, want %v at %#x", tt.name, o, tt.want, before+1)
		}
	}
	if want := fmt.Sprintf("version=%x", r.zxid()); !strings.HasSuffix(r.configText(), want) {
		t.Errorf("config %q, want %s", r.configText(), want)
	}
	c.settled()

	off := newCluster(t, 3)
	for id := uint64(1); id <= 3; id++ {
		off.start(id, func(cfg *Config) { cfg.Policy = 0 })
	}
	_, r = off.follower()
	if o := r.do(reconfigure(r.attach(time.Minute), "", "", "", -1)); o.code != proto.ErrReconfigDisabled {
		t.Errorf("disabled: %+v", o)
	}
}

// TestGrowAndShrink grows an ensemble from three servers to five and shrinks it to three
// again. The last step removes the current leader and the server that is asked.
func TestGrowAndShrink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testGrowAndShrink)
}

func testGrowAndShrink(t *testing.T) {
	c := newCluster(t, 3)
	c.startAll()
	r := c.rigs[1]
	s := r.attach(time.Minute)
	r.do(create(s, "/a", 0))
	for id := uint64(4); id <= 5; id++ {
		c.start(id, func(cfg *Config) { cfg.Members = append(slices.Clone(c.list), memberAt(id)) })
	}
	c.neverServed(4, 5)
	if o := r.do(reconfigure(s, serverLine(4)+","+serverLine(5), "", "", -1)); o.code != proto.Ok || o.events != 1 {
		t.Fatalf("growing: %+v", o)
	}
	c.rigs[4].awaitServed()
	c.rigs[5].awaitServed()
	c.awaitIDs("1,2,3,4,5 voting 1,2,3,4,5 others ")
	c.settled()

	lead, _ := c.leader()
	leaving := []uint64{lead, 1}
	if lead == 1 {
		leaving[1] = 2
	}
	r = c.rigs[leaving[1]]
	s = r.attach(time.Minute)
	ch := make(chan outcome, 1)
	cmd := reconfigure(s, "", fmt.Sprintf("%d,%d", leaving[0], leaving[1]), "", -1)
	cmd.Waiter = waiter(ch)
	if err := r.Propose(&cmd); err != nil {
		t.Fatal(err)
	}
	if o := r.get(ch); o.code != proto.Ok {
		t.Fatalf("shrinking: %+v", o)
	}
	for _, id := range leaving {
		c.stop(id)
	}
	var rest []string
	for id := uint64(1); id <= 5; id++ {
		if !slices.Contains(leaving, id) {
			rest = append(rest, fmt.Sprint(id))
		}
	}
	want := strings.Join(rest, ",")
	c.awaitIDs(want + " voting " + want + " others ")
	c.settled()
	_, r = c.leader()
	if o := c.sure(r, ptr(r.attach(time.Minute)), func(s session.Session) command.Command { return create(s, "/b", 0) }); o.code != proto.Ok {
		t.Fatalf("%+v", o)
	}
}

// TestReplaceAll replaces all three servers in one reconfig. The old ones may be
// switched off as soon as it is answered.
func TestReplaceAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testReplaceAll)
}

func testReplaceAll(t *testing.T) {
	c := newCluster(t, 3)
	c.startAll()
	r := c.rigs[1]
	s := r.attach(time.Minute)
	r.do(create(s, "/a", 0))
	var lines []string
	for id := uint64(4); id <= 6; id++ {
		c.start(id, func(cfg *Config) { cfg.Members = append(slices.Clone(c.list), memberAt(id)) })
		lines = append(lines, serverLine(id))
	}
	c.eventually("the reconfig", func() bool {
		o := r.do(reconfigure(s, "", "", strings.Join(lines, "\n"), -1))
		if o.code != proto.Ok && o.code != proto.ErrNewConfigNoQuorum {
			t.Fatalf("%+v", o)
		}
		return o.code == proto.Ok
	})
	for id := uint64(1); id <= 3; id++ {
		c.kill(id)
	}
	c.awaitIDs("4,5,6 voting 4,5,6 others ")
	for id, r := range c.rigs {
		r.awaitServed()
		if !r.exists("/a") {
			t.Errorf("server %d does not have what was committed", id)
		}
	}
	c.settled()
}

// TestObserver adds an observer, which serves and forwards, and has no vote.
func TestObserver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testObserver)
}

func testObserver(t *testing.T) {
	c := newCluster(t, 4)
	c.list[3].Observer = true
	c.startAll()
	o := c.rigs[4]
	if s := o.Status(); s.Role != Observer {
		t.Errorf("%+v", s)
	}
	if out := o.do(create(o.attach(time.Minute), "/a", 0)); out.code != proto.Ok {
		t.Fatalf("%+v", out)
	}
	c.awaitIDs("1,2,3,4 voting 1,2,3 others 4")
	if !strings.Contains(o.configText(), "server.4=s4:2888:3888:observer;") {
		t.Errorf("config %q", o.configText())
	}
	c.settled()
}

func (c *cluster) neverServed(ids ...uint64) {
	c.t.Helper()
	for range 20 {
		for _, id := range ids {
			if s := c.rigs[id].Status(); s.Serving {
				c.t.Fatalf("server %d is no member and serves: %+v", id, s)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestLeaderDiesWhileItDrives kills the leader at some point of a reconfig that
// replaces two of three servers. In the end the membership is the old or the new one,
// Raft's voters are its servers, and the answer of the reconfig matches.
func TestLeaderDiesWhileItDrives(t *testing.T) {
	for i, after := range []time.Duration{0, 1, 5, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200, 400} {
		if testing.Short() && i%7 != 0 {
			continue
		}
		t.Run(fmt.Sprint(after*time.Millisecond), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				leaderDies(t, func(<-chan outcome) (outcome, bool) { time.Sleep(after * time.Millisecond); return outcome{}, false })
			})
		})
	}
}

// leaderDies kills the leader when wait returns. wait gets the channel of the answer,
// and returns the answer if it has arrived.
func leaderDies(t *testing.T, wait func(<-chan outcome) (outcome, bool), tune ...func(*Config)) {
	c := newCluster(t, 3)
	for id := uint64(1); id <= 3; id++ {
		c.start(id, tune...)
	}
	for _, r := range c.rigs {
		r.awaitServed()
	}
	s := c.rigs[1].attach(time.Hour)
	for id := uint64(4); id <= 5; id++ {
		c.start(id, append(slices.Clone(tune), func(cfg *Config) { cfg.Members = append(slices.Clone(c.list), memberAt(id)) })...)
	}
	time.Sleep(time.Second) // until the leader knows about them
	lead, _ := c.leader()
	r := c.rigs[1]
	if lead == 1 {
		t.Fatal("server 1 leads")
	}
	answer := make(chan outcome, 1)
	go func() {
		cmd := reconfigure(s, serverLine(4)+","+serverLine(5), "2,3", "", -1)
		cmd.Waiter = waiter(answer)
		_ = r.Propose(&cmd)
	}()
	o, answered := wait(answer)
	c.kill(lead)
	if !answered {
		select {
		case o = <-answer:
		case <-time.After(2 * time.Minute):
			t.Log("the reconfig was given up")
		}
	}
	if o.zxid != 0 && o.code == proto.Ok {
		for id := uint64(2); id <= 3; id++ { // an operator who got the reply may switch them off immediately
			if id != lead {
				c.kill(id)
			}
		}
		c.awaitIDs("1,4,5 voting 1,4,5 others ")
	} else {
		t.Logf("%+v", o)
		c.eventually("an agreement", func() bool {
			ids := c.ids()
			// 3 is dead: if it has lost its vote, it does not get it back.
			return ids == "1,4,5 voting 1,4,5 others " || ids == "1,2,3 voting 1,2,3 others " || ids == "1,2,3 voting 1,2 others 3"
		})
		if strings.HasPrefix(c.ids(), "1,2") {
			delete(c.rigs, 4)
			delete(c.rigs, 5)
		} else {
			delete(c.rigs, 2)
			delete(c.rigs, 3)
		}
	}
	_, r = c.leader()
	if o := c.sure(r, ptr(r.attach(time.Hour)), func(s session.Session) command.Command { return create(s, "/b", 0) }); o.code != proto.Ok {
		t.Fatalf("%+v", o)
	}
	c.settled()
}

// TestReturnsWithoutLeaving: a removed server that could not be notified still
// considers itself a member. When it is added again, the leader must find it.
func TestReturnsWithoutLeaving(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.startAll()
		c.net.Partition([]string{hostOf(1)}, []string{hostOf(2), hostOf(3)})
		r := c.rigs[2]
		s := r.attach(time.Minute)
		if o := c.sure(r, &s, func(s session.Session) command.Command { return reconfigure(s, "", "1", "", -1) }); o.code != proto.Ok {
			t.Fatalf("%+v", o)
		}
		c.awaitIDs("2,3 voting 2,3 others ")
		c.net.Rejoin([]string{hostOf(1)}, []string{hostOf(2), hostOf(3)})
		time.Sleep(10 * time.Second)
		if o := c.sure(r, &s, func(s session.Session) command.Command { return reconfigure(s, serverLine(1), "", "", -1) }); o.code != proto.Ok {
			t.Fatalf("%+v", o)
		}
		c.awaitIDs("1,2,3 voting 1,2,3 others ")
		c.rigs[1].awaitServed()
		c.settled()
	})
}

// TestCutOffServerReportsIt: a server that is cut off while its connections stay open
// doesn't claim to serve for longer than syncLimit, whether or not it has been removed
// in the meantime. After it is back, it reports that it serves.
func TestCutOffServerReportsIt(t *testing.T) {
	for _, removed := range cost.InShort([]bool{true}, []bool{false, true}) {
		t.Run(fmt.Sprintf("removed=%t", removed), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCluster(t, 3)
				c.startAll()
				cut := c.rigs[1]
				others := []string{hostOf(2), hostOf(3)}
				limit := time.Duration(cut.cfg.SyncLimit) * cut.cfg.TickTime
				c.net.Partition([]string{hostOf(1)}, others)
				time.Sleep(cut.cfg.timing().Ask)
				if s := cut.Status(); !s.Serving {
					t.Errorf("it does not wait for its leader: %+v", s)
				}
				if removed {
					r := c.rigs[2]
					s := r.attach(time.Minute)
					if o := c.sure(r, &s, func(s session.Session) command.Command { return reconfigure(s, "", "1", "", -1) }); o.code != proto.Ok {
						t.Fatalf("%+v", o)
					}
					c.awaitIDs("2,3 voting 2,3 others ")
				}
				time.Sleep(limit)
				for range 100 {
					if s := cut.Status(); s.Serving || s.Role != Looking || s.Reason == "" {
						t.Fatalf("cut off for more than %v: %+v", limit, s)
					}
					time.Sleep(100 * time.Millisecond)
				}
				c.net.Rejoin([]string{hostOf(1)}, others)
				c.farApart() // so that acknowledgements of old reports arrive alone
				for range 200 {
					if s, age := cut.Status(), time.Since(cut.Confirmed()); s.Serving && (removed || age >= limit) {
						t.Fatalf("%v after the newest contact: %+v", age, s)
					}
					time.Sleep(time.Millisecond)
				}
				if removed {
					time.Sleep(2 * limit)
					c.neverServed(1)
					if age := time.Since(cut.Confirmed()); age < limit {
						t.Errorf("a server that is no member any more had a contact %v ago", age)
					}
					return
				}
				cut.awaitServed()
				c.settled()
			})
		})
	}
}

// stuckReconfig is a reconfig that adds a server with a disk so slow that the server
// doesn't catch up.
type stuckReconfig struct {
	*cluster
	r        *rig // the server that was asked
	s        session.Session
	begin    time.Time
	answer   chan outcome
	returned chan error // result of Propose
}

func newStuckReconfig(t *testing.T, pause time.Duration, tune ...func(*Config)) (q *stuckReconfig, end func()) {
	c := newCluster(t, 3).onDisk()
	c.startAll(tune...)
	stuck := &stalling{FS: vfs.OS{}}
	c.start(4, append(slices.Clone(tune), func(cfg *Config) { cfg.Members, cfg.FS = append(slices.Clone(c.list), memberAt(4)), stuck })...)
	time.Sleep(time.Second) // until the leader knows about it
	stuck.slow(pause)
	r := c.rigs[1]
	q = &stuckReconfig{cluster: c, r: r, s: r.attach(time.Hour), begin: time.Now(), answer: make(chan outcome, 1), returned: make(chan error, 1)}
	go func() {
		cmd := reconfigure(q.s, serverLine(4), "", "", -1)
		cmd.Waiter = waiter(q.answer)
		q.returned <- r.Propose(&cmd)
	}()
	time.Sleep(time.Second)
	return q, func() { // the server doesn't stop before that either
		stuck.slow(0)
		time.Sleep(pause)
	}
}

// TestReconfigDelaysNoOtherRequest: while a joining server doesn't catch up, the reconfig
// and its client wait until the leader gives up. All other clients continue, on the
// same server, too. Another reconfig immediately gets the error that one is in
// progress, and the server can be stopped.
func TestReconfigDelaysNoOtherRequest(t *testing.T) {
	for _, stop := range []bool{false, true} {
		t.Run(fmt.Sprintf("stopped=%t", stop), func(t *testing.T) {
			if testing.Short() && !stop {
				t.Skip("takes ten seconds and more; not with -short")
			}
			inBubble(t, func(t *testing.T) {
				pause := 2 * time.Minute
				if stop {
					pause = 10 * time.Second // longer than the server needs to stop
				}
				q, end := newStuckReconfig(t, pause)
				defer end()
				r, other := q.r, q.r.attach(time.Hour)
				for i := range 10 {
					asked := time.Now()
					if o := r.do(create(other, fmt.Sprintf("/beside-%d", i), 0)); o.code != proto.Ok || time.Since(asked) > time.Second {
						t.Errorf("a write beside it: %v after %v", o.code, time.Since(asked))
					}
				}
				asked := time.Now()
				if o := r.do(reconfigure(other, "", "2", "", -1)); o.code != proto.ErrReconfigInProgress || time.Since(asked) > time.Second {
					t.Errorf("another reconfig: %v after %v", o.code, time.Since(asked))
				}
				if stop {
					asked := time.Now()
					q.stop(1)
					if d := time.Since(asked); d > 3*time.Second {
						t.Errorf("the server took %v to stop", d)
					}
					if err := <-q.returned; err == nil {
						t.Error("a server that was stopped has proposed the reconfig")
					}
					return
				}
				o := r.get(q.answer)
				if d := time.Since(q.begin); o.code != proto.ErrNewConfigNoQuorum || d > ensemble.DriveTimeout+time.Second {
					t.Errorf("%v after %v", o.code, d)
				}
				if err := <-q.returned; err != nil {
					t.Error(err)
				}
				q.awaitIDs("1,2,3 voting 1,2,3 others ")
			})
		})
	}
}

// TestSlowJoiner: with NeedsAll, a server that doesn't catch up within the time of a
// reconfig still gets the log, so that it has caught up when it asks again. If it doesn't
// ask, it is removed.
func TestSlowJoiner(t *testing.T) {
	for _, asks := range cost.InShort([]bool{true}, []bool{false, true}) {
		t.Run(fmt.Sprintf("asks=%t", asks), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				q, end := newStuckReconfig(t, ensemble.DriveTimeout+10*time.Second, func(cfg *Config) { cfg.NeedsAll = true })
				if o := q.r.get(q.answer); o.code != proto.ErrNewConfigNoQuorum {
					t.Fatalf("%+v", o)
				}
				time.Sleep(15 * time.Second)
				q.awaitIDs("1,2,3 voting 1,2,3 others 4")
				q.neverServed(4)
				if asks {
					var ended sync.WaitGroup
					defer ended.Wait()
					ended.Go(end)
					for range 3 { // the disk is at a slow write
						if o := q.r.do(reconfigure(q.s, serverLine(4), "", "", -1)); o.code == proto.Ok {
							break
						}
					}
					q.awaitIDs("1,2,3,4 voting 1,2,3,4 others ")
					return
				}
				end()
				q.awaitIDs("1,2,3 voting 1,2,3 others ")
			})
		})
	}
}

// TestReconfigOfAClientThatMoved: if the client reconnects while its reconfig waits,
// the reconfig is dropped like any write of an earlier connection, and its changes to
// Raft's configuration are undone.
func TestReconfigOfAClientThatMoved(t *testing.T) {
	for _, moves := range cost.InShort([]bool{true}, []bool{false, true}) {
		t.Run(fmt.Sprintf("moves=%t", moves), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				q, end := newStuckReconfig(t, 4*time.Second)
				defer end()
				if moves {
					q.rigs[2].reattach(q.s)
				}
				o := q.r.get(q.answer)
				if d := time.Since(q.begin); d < 2*time.Second || d > ensemble.DriveTimeout {
					t.Errorf("answered after %v: this shows nothing", d)
				}
				if !moves {
					if o.code != proto.Ok {
						t.Errorf("%+v", o)
					}
					q.awaitIDs("1,2,3,4 voting 1,2,3,4 others ")
					return
				}
				if o.code != proto.ErrSessionMoved {
					t.Errorf("%+v", o)
				}
				q.awaitIDs("1,2,3 voting 1,2,3 others ")
			})
		})
	}
}

// steps is a log output that counts the changes of Raft's configuration.
type steps struct {
	after   int // close reached at this one
	reached chan struct{}
	mu      sync.Mutex
	seen    int
}

func (s *steps) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("Raft's configuration changed")) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.seen++; s.seen == s.after {
			close(s.reached)
		}
	}
	return len(line), nil
}

// into makes a server log to s.
func (s *steps) into(cfg *Config) { cfg.Logger = slog.New(slog.NewTextHandler(s, nil)) }

// TestLeaderDiesAfterEachStep kills the leader right after the first, the second, …
// change of Raft's configuration in one reconfig. The reconfig is either carried out or
// completely undone, and the answer matches.
func TestLeaderDiesAfterEachStep(t *testing.T) {
	for after := 1; after <= 8; after += cost.InShort(3, 1) {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { leaderDiesAfterStep(t, after) })
		})
	}
}

func leaderDiesAfterStep(t *testing.T, after int) {
	log := &steps{after: after, reached: make(chan struct{})}
	leaderDies(t, func(answer <-chan outcome) (outcome, bool) {
		select {
		case <-log.reached:
			return outcome{}, false
		case o := <-answer:
			t.Logf("the reconfig takes fewer than %d steps", after)
			return o, true
		}
	}, log.into)
}
