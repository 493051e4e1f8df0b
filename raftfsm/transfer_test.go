package raftfsm

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// pipeline is a client that keeps many creates in flight, /ID-0, /ID-1 and so on, and
// reconnects when its connection is closed.
type pipeline struct {
	c    *cluster
	r    *rig
	id   uint64
	stop chan struct{}
	done chan struct{}

	conns []span // one per connection
}

// span is the traffic of one connection: the creates from first up to end. The first
// acked creates were answered. end is the highest known.
type span struct{ first, end, acked int }

const (
	pipelined = 50              // creates in flight
	longest   = 5 * time.Second // until one create is answered or given up
)

func (p *pipeline) path(i int) string { return fmt.Sprintf("/p-%d-%d", p.id, i) }

func (p *pipeline) run() {
	defer close(p.done)
	s := p.r.attach(time.Hour)
	for next := 0; ; {
		for {
			if o, ok := p.r.tryReattach(s); ok {
				s.Gen = o.attached.Gen
				break
			}
		}
		conn := span{first: next, end: next}
		answers := make(chan outcome, pipelined)
		sent := make(map[int]time.Time)
		way := uint64(0)
		for lost := p.r.lostCount(); p.r.lostCount() == lost; {
			select {
			case <-p.stop:
				p.conns = append(p.conns, conn)
				return
			default:
			}
			for conn.end-conn.first-conn.acked < pipelined {
				cmd := create(s, p.path(conn.end), 0)
				if conn.end > conn.first+conn.acked {
					cmd.Way = way
				}
				cmd.Waiter = waiter(answers)
				err := p.r.Propose(&cmd)
				if errors.Is(err, propose.ErrLostBefore) {
					break // the connection is over
				}
				way = cmd.Way
				if err != nil {
					p.c.t.Errorf("Propose: %v", err)
					return
				}
				sent[conn.end] = time.Now()
				conn.end++
			}
			select {
			case o := <-answers:
				if want := p.path(conn.first + conn.acked); o.code != proto.Ok || o.path != want {
					p.c.t.Errorf("an answer to %s: %v %s", want, o.code, o.path)
					return
				}
				conn.acked++
			case <-time.After(5 * time.Millisecond):
				if d := time.Since(sent[conn.first+conn.acked]); d > longest {
					p.c.t.Errorf("%s was neither answered nor given up in %v", p.path(conn.first+conn.acked), d)
					return
				}
			}
		}
		p.conns = append(p.conns, conn)
		next = conn.end
	}
}

// check compares the executed creates with those sent and answered: of each connection,
// a prefix in order was executed, which includes the answered ones. It returns how many
// connections lost some.
func (p *pipeline) check() (lossy int) {
	p.r.Tree().RLock()
	defer p.r.Tree().RUnlock()
	zxid, acked := int64(0), 0
	for k, conn := range p.conns {
		executed, gap := 0, -1
		for i := conn.first; i < conn.end; i++ {
			n := p.r.Tree().Get(p.path(i))
			if n == nil {
				gap = i
				continue
			}
			if gap >= 0 {
				p.c.t.Errorf("connection %d of server %d: create %d was executed, %d before it was not", k, p.id, i, gap)
				break
			}
			executed++
			var stat proto.Stat
			if n.Stat(&stat); stat.Czxid <= zxid {
				p.c.t.Errorf("create %d of server %d has zxid %#x, the one before it %#x", i, p.id, stat.Czxid, zxid)
			}
			zxid = stat.Czxid
		}
		if conn.acked > executed {
			p.c.t.Errorf("connection %d of server %d: %d creates were answered, %d executed", k, p.id, conn.acked, executed)
		}
		if conn.end-conn.first > executed {
			lossy++
		}
		acked += conn.acked
	}
	p.c.t.Logf("server %d: %d creates answered over %d connections, %d of which lost something", p.id, acked, len(p.conns), lossy)
	return lossy
}

// farApart delays messages between any two servers by a millisecond.
func (c *cluster) farApart() {
	for _, a := range c.list {
		for _, b := range c.list {
			if a.ID != b.ID {
				c.net.Delay(hostOf(a.ID), hostOf(b.ID), 20*time.Millisecond)
			}
		}
	}
}

// TestFailingTransfers hands over leadership again and again while clients of all
// servers keep many writes in flight. Most transfers fail: the other server doesn't get
// the request, or no server hears about that server's candidacy. Raft refuses entries
// during that time although this server still leads, and may accept entries that follow
// a refused one. Of each connection's writes, a prefix is executed and nothing after a
// lost write. Unanswered writes are given up soon, and the writes continue.
func TestFailingTransfers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.startAll()
		c.farApart() // otherwise no time would pass while the clients are busy
		var pipelines []*pipeline
		for id, r := range c.rigs {
			p := &pipeline{c: c, r: r, id: id, stop: make(chan struct{}), done: make(chan struct{})}
			pipelines = append(pipelines, p)
			go p.run()
		}
		refused, stayed := 0, 0
		for round := range 12 {
			time.Sleep(200 * time.Millisecond)
			id, lead := c.leader()
			to, third := id%3+1, (id+1)%3+1
			switch round % 3 {
			case 0: // the request does not arrive
				c.net.Hold(hostOf(id), hostOf(to))
			case 1: // the candidacy does not arrive
				c.net.Hold(hostOf(to), hostOf(third))
				c.net.Hold(hostOf(to), hostOf(id))
			case 2: // it works
			}
			serverID, addr := lead.locate(to)
			err := lead.replica.Raft().LeadershipTransferToServer(serverID, addr).Error()
			if err != nil {
				refused++
			}
			if err != nil && lead.replica.Raft().State() == raft.Leader {
				stayed++
			}
			all := []string{hostOf(1), hostOf(2), hostOf(3)}
			c.net.Rejoin(all, all)
			c.farApart()
		}
		time.Sleep(time.Second)
		for _, p := range pipelines {
			close(p.stop)
			<-p.done
		}
		c.leader()
		for id, r := range c.rigs { // all servers continue
			s := r.attach(time.Minute)
			c.sure(r, &s, func(s session.Session) command.Command { return create(s, fmt.Sprintf("/after-%d", id), 0) })
		}
		c.settled()
		lossy := 0
		for _, p := range pipelines {
			lossy += p.check()
		}
		ended := 0
		for _, r := range c.rigs {
			for _, err := range r.lost {
				if strings.Contains(err.Error(), raft.ErrLeadershipTransferInProgress.Error()) {
					ended++
				}
			}
		}
		t.Logf("%d transfers failed, after %d of them the leader stayed; %d incarnations ended by them", refused, stayed, ended)
		if refused < 4 || stayed < 3 || ended < 3 || lossy < 3 {
			t.Error("too little went wrong: this shows nothing")
		}
	})
}

// TestClosingAmongTheDead closes all servers at once when no server reaches another any
// more: the leader doesn't wait for another server to become the leader.
func TestClosingAmongTheDead(t *testing.T) {
	t.Parallel()
	for range cost.InShort(10, 40) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 3)
			c.startAll()
			_, newest := c.rigs[1].Level()
			c.awaitLevel(newest)
			c.settled()
			_, lead := c.leader()
			s := lead.attach(time.Minute)
			c.sure(lead, &s, func(s session.Session) command.Command { return create(s, "/a", 0) })
			for id := range c.rigs {
				c.net.Kill(hostOf(id))
			}
			began := time.Now()
			var all sync.WaitGroup
			for _, r := range c.rigs {
				all.Go(func() { r.Close() })
			}
			all.Wait()
			if took := time.Since(began); took > 500*time.Millisecond {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestTransfersAreNoOffence transfers leadership as fast as possible. No server
// mistakes a message for one that no correct server sends, although some come from a
// leader that has just been replaced. The test runs in real time, where goroutines
// interleave in more ways.
func TestTransfersAreNoOffence(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5)
	var log logText
	c.startAll(log.tune)
	times := 1500
	if testing.Short() {
		times = 300
	}
	for range times {
		_, lead := c.leader()
		_ = lead.Transfer(t.Context()) // it may have lost leadership
	}
	for _, line := range log.lines() {
		if strings.Contains(line, "refused a Raft message") {
			t.Error(line)
		}
	}
}
