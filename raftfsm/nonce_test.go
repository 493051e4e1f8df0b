package raftfsm

import (
	"fmt"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// TestCommandsOfAnEarlierStart: the commands that this server sent before its restart
// have sequence numbers that are used again. Applying them answers no client.
func TestCommandsOfAnEarlierStart(t *testing.T) {
	t.Parallel()
	r := newReplica(t)
	l := newLeader(5, 0)
	r.mustFeed(t, l.begin())
	if err := r.node.Propose(&command.Command{Kind: command.KindSync, Waiter: ignorant{}}); err != nil {
		t.Fatal(err)
	}
	for _, nonce := range []uint64{r.node.local.Nonce + 1, r.node.local.Nonce} {
		b := l.batch(command.Command{Kind: command.KindSync})
		h := command.RunHeader{Server: r.node.local.Server, Nonce: nonce, First: 1, Count: 1, Size: uint32(len(b) - command.BatchHeaderSize - command.RunHeaderSize)}
		h.Put(b[command.BatchHeaderSize:])
		r.recorder.applied = nil
		r.mustFeed(t, b)
		if waited, own := r.recorder.applied[0].waited, nonce == r.node.local.Nonce; waited != own {
			t.Errorf("a command of this start: %t; a waiter is answered: %t", own, waited)
		}
	}
}

// TestKilledOriginAnswersNoClient kills a server with a hundred commands in flight and
// restarts it, again and again. Its clients propose before it has read its log, so the
// commands of all its earlier runs are executed while the new ones, which have the same
// numbers, wait. Each new command gets its own answer.
func TestKilledOriginAnswersNoClient(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, 3).onDisk()
		c.startAll()
		lead, _ := c.leader()
		id := lead%3 + 1
		s := c.rigs[id].attach(time.Hour)
		answered, replayed, rounds := 0, 0, cost.InShort(4, 20)
		for round := range rounds {
			r := c.rigs[id]
			for i := range 100 {
				r.send(create(s, fmt.Sprintf("/on-its-way-%d-%d", round, i), 0))
			}
			if round%2 == 0 { // some or all commands reach the leader
				time.Sleep(time.Millisecond)
			}
			c.kill(id)
			r = c.start(id)
			lost := r.lostCount()
			waiting := make(map[string]chan outcome)
			for i := range 50 {
				path := fmt.Sprintf("/new-%d-%d", round, i)
				waiting[path] = r.send(create(s, path, 0))
			}
			r.awaitServed()
			c.eventually("an answer to everything", func() bool {
				if r.lostCount() != lost {
					return true // the leader has changed: they are given up
				}
				for _, ch := range waiting {
					if len(ch) == 0 {
						return false
					}
				}
				return true
			})
			for path, ch := range waiting {
				if len(ch) == 0 {
					continue
				}
				answered++
				if o := <-ch; o.path != path || o.code != proto.Ok {
					t.Fatalf("round %d: the answer to the create of %s is %v %s", round, path, o.code, o.path)
				}
			}
			r.note(func() {
				for _, o := range r.applied {
					if o.session == s.ID && !o.waited {
						replayed++
					}
				}
			})
		}
		t.Logf("%d commands were answered; %d of earlier lives were executed beside them", answered, replayed)
		if answered < 25*rounds || replayed < 50*rounds {
			t.Error("too little happened: this shows nothing")
		}
		c.settled()
	})
}
