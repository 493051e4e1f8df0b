package raftfsm

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
)

// gated is a Handler that can stop the state machine between two entries.
type gated struct {
	*recorder
	gate chan struct{} // nil: open
}

// BatchDone implements Handler. The tree is not locked here, so tests can read it while
// the machine is stopped.
func (g *gated) BatchDone() {
	g.recorder.BatchDone()
	g.mu.Lock()
	gate := g.gate
	g.mu.Unlock()
	if gate != nil {
		<-gate
	}
}

// shut stops the machine after the current entry.
func (g *gated) shut() (open func()) {
	gate := make(chan struct{})
	g.note(func() { g.gate = gate })
	return sync.OnceFunc(func() {
		g.note(func() { g.gate = nil })
		close(gate)
	})
}

// TestLateWinner lets a server win an election while its log is complete but its state
// machine is a hundred entries late. The server doesn't lead before it has applied them.
// Until then it says so, executes nothing, and ends no session: it may not know the
// session or its newest timeout yet. From then on each session has its full timeout.
func TestLateWinner(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const tick, short, long = 200 * time.Millisecond, 4 * time.Second, 30 * time.Second
		c := newCluster(t, 3)
		slow := &gated{recorder: newRecorder()}
		for _, m := range c.list {
			c.start(m.ID, func(cfg *Config) {
				if m.ID == 1 { // the highest id is the first leader
					cfg.Handler = slow
				}
			})
		}
		winner := c.rigs[1]
		winner.recorder = slow.recorder
		for _, r := range c.rigs {
			r.awaitServed()
		}
		old, lead := c.leader()
		early := lead.attach(short)
		winner.wait(t, "the session on the server that will be late", func() bool { return len(winner.applied) > 0 })

		open := slow.shut()
		defer open()
		const tail = 100 // with more, Raft itself waits for the machine
		early.Timeout = int32(long.Milliseconds())
		early.Gen = lead.reattach(early).attached.Gen
		lead.do(create(early, "/early", flagEphemeral))
		var newest session.Session
		for i := range tail {
			if i == tail/2 {
				newest = lead.attach(short)
				lead.do(create(newest, "/newest", flagEphemeral))
			}
			lead.do(create(early, fmt.Sprintf("/tail-%d", i), 0))
		}
		id, addr := lead.locate(1)
		if err := lead.replica.Raft().LeadershipTransferToServer(id, addr).Error(); err != nil {
			t.Fatal(err)
		}
		c.eventually("the election", func() bool { return winner.replica.Raft().State() == raft.Leader })
		c.kill(old)
		ch := winner.send(command.Command{Kind: command.KindSync})
		for until := time.Now().Add(3 * short); time.Now().Before(until); time.Sleep(tick) {
			if winner.replica.Raft().State() != raft.Leader {
				t.Fatal("it does not keep the lead: this shows nothing")
			}
			if s := winner.Status(); s.Role == Leader || s.Serving && s.Leader == 1 {
				t.Fatalf("%+v, and the newest znode is missing: %v", s, !winner.exists(fmt.Sprintf("/tail-%d", tail-1)))
			}
			if len(ch) > 0 {
				t.Fatal("it has executed a command")
			}
			for other, r := range c.rigs {
				if s := r.Status(); s.Serving && s.Leader == 1 {
					t.Fatalf("server %d follows it already: %+v", other, s)
				}
			}
		}
		open()
		winner.wait(t, "the lead", func() bool { return winner.Status().Role == Leader })
		if !winner.exists(fmt.Sprintf("/tail-%d", tail-1)) {
			t.Error("it leads without having applied what was committed before")
		}
		for _, s := range []struct {
			session.Session
			timeout time.Duration
		}{{newest, short}, {early, long}} {
			begin := time.Now()
			if s.ID == early.ID {
				begin = begin.Add(-short - tick - tick/2) // it has waited for the other one
			}
			if o := winner.do(command.Command{Kind: command.KindSync}); o.code != proto.Ok {
				t.Errorf("a sync under the new leader: %+v", o)
			}
			winner.lifetime(s.Session, time.Minute)
			if d := time.Since(begin); d < s.timeout || d > s.timeout+3*tick+tick/2 {
				t.Errorf("session with a timeout of %v: expired %v after the new leader began", s.timeout, d)
			}
		}
		if winner.exists("/newest") || winner.exists("/early") {
			t.Error("a session is gone and its znode is not")
		}
	})
}

// TestFullTimeoutUnderEveryLeader changes the leader again and again, by crashes and
// transfers, whenever most of the timeout of a silent session is over. Each new leader
// gives the session its full timeout again, even a leader that led before and knew the
// session then. Once the leader stays, the session ends in time.
func TestFullTimeoutUnderEveryLeader(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const tick, timeout = 200 * time.Millisecond, 6 * time.Second
		c := newCluster(t, 3).onDisk()
		c.startAll()
		_, f := c.follower()
		s := f.attach(timeout)
		held := make(map[uint64]int)
		begin := time.Now()
		for round := range 8 {
			id, lead := c.leader()
			held[id]++
			time.Sleep(time.Until(begin.Add(timeout * 9 / 10)))
			if round%2 == 0 {
				if err := lead.Transfer(t.Context()); err != nil {
					t.Fatal(err)
				}
			} else {
				c.kill(id)
			}
			c.eventually("another leader", func() bool {
				for other, r := range c.rigs {
					if st := r.Status(); other != id && st.Role == Leader && st.Serving {
						return true
					}
				}
				return false
			})
			begin = time.Now()
			if c.rigs[id] == nil {
				c.start(id).awaitServed()
			}
			_, lead = c.leader()
			lead.Tree().RLock()
			_, lives := lead.Sessions().Get(s.ID)
			lead.Tree().RUnlock()
			if !lives {
				t.Fatalf("round %d: the session was ended before its timeout was over under this leader", round)
			}
		}
		id, lead := c.leader()
		lead.lifetime(s, time.Minute)
		if d := time.Since(begin); d < timeout-tick || d > timeout+2*tick {
			t.Errorf("under the last leader it lived %v, its timeout is %v", d, timeout)
		}
		again := held[id] > 0
		for _, n := range held {
			again = again || n > 1
		}
		if len(held) < 2 || !again {
			t.Errorf("no server led twice: %v", held)
		}
		c.settled()
	})
}
