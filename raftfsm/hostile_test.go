package raftfsm

import (
	"bytes"
	"context"
	"encoding/hex"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/raftfsm/internal/exchange"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/tests/safety/hostile"
)

// TestHostilePeer: a process that knows the cluster id sends every kind of invalid message
// to a leader and to a follower, in the name of a member that is down. The servers refuse
// and count the messages, and keep working.
func TestHostilePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.startAll()
		c.kill(3)
		_, leader := c.leader()
		for _, id := range []uint64{1, 2} {
			c.rigs[id].awaitServed()
		}
		var cluster quorum.ClusterID
		if _, err := hex.Decode(cluster[:], []byte(leader.replica.Identity.Cluster)); err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(1, 2))
		p, err := hostile.New(c.net.Host("x"), "x:1", "3", cluster, rnd)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		write := func(r *rig, path string) {
			t.Helper()
			if o := r.do(create(r.attach(time.Minute), path, 0)); o.code != proto.Ok {
				t.Fatalf("%s: %+v", path, o)
			}
		}
		write(leader, "/before")
		frames := hostile.Frames("3", rnd)
		for _, name := range slices.Sorted(maps.Keys(frames)) {
			for _, id := range []uint64{1, 2} {
				target := c.rigs[id]
				term, refused := target.replica.Raft().CurrentTerm(), target.RefusedMessages()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				p.Send(ctx, quorum.Raft, memberAt(id).QuorumAddr, string(membership.FounderID(id)), frames[name])
				cancel()
				if got := target.replica.Raft().CurrentTerm(); got > term+1 {
					t.Errorf("%s: server %d goes from term %d to %d", name, id, term, got)
				}
				if target.RefusedMessages() == refused && name != "junk" && name != "a snapshot that never comes" {
					t.Errorf("%s: server %d did not refuse it", name, id)
				}
			}
		}
		for range 300 {
			id := uint64(1 + rnd.IntN(2))
			p.Attack(t.Context(), memberAt(id).QuorumAddr, string(membership.FounderID(id)))
		}
		_, leader = c.leader()
		write(leader, "/after")
		c.eventually("two servers with both znodes", func() bool {
			return c.rigs[1].exists("/before") && c.rigs[2].exists("/before") && c.rigs[1].exists("/after") && c.rigs[2].exists("/after")
		})
		for id, r := range c.rigs {
			select {
			case err := <-r.Err():
				t.Errorf("server %d has stopped: %v", id, err)
			default:
			}
		}
	})
}

// TestStrangerAtTheQuorumPort: a caller that isn't on the list learns neither the cluster id
// nor the disk ids, doesn't get a member's place, and can't change the membership.
func TestStrangerAtTheQuorumPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.startAll()
		_, leader := c.leader()
		id := []byte(leader.replica.Identity.Cluster)
		raw := make([]byte, hex.DecodedLen(len(id)))
		if _, err := hex.Decode(raw, id); err != nil {
			t.Fatal(err)
		}
		config := string(leader.Membership())
		rnd := rand.New(rand.NewPCG(3, 4))
		p, err := hostile.New(c.net.Host("x"), "x:1", "3", quorum.ClusterID{}, rnd)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for _, q := range []any{
			&bootstrap.Question{Probe: &bootstrap.Probe{ID: 9, Phase: bootstrap.PhaseEmpty, Join: true, As: membership.JoinerID(9, 5), Level: command.Level, Token: 7}},
			&bootstrap.Question{Probe: &bootstrap.Probe{ID: 3, Disk: 5, Phase: bootstrap.PhaseEmpty, Join: true, As: membership.JoinerID(3, 5), Level: command.Level, Token: 7}},
			&bootstrap.Question{Probe: &bootstrap.Probe{ID: 3, Phase: bootstrap.PhaseMember, As: membership.FounderID(3), Level: command.Level}},
			&ensemble.ChangeQuestion{Reconfig: &ensemble.DriveRequest{}},
		} {
			var b bytes.Buffer
			if err := exchange.Write(&b, q); err != nil {
				t.Fatal(err)
			}
			for _, m := range c.list {
				for _, kind := range []quorum.Kind{quorum.Probe, quorum.Change} {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					got := p.Send(ctx, kind, m.QuorumAddr, "", b.Bytes())
					cancel()
					if bytes.Contains(got, id) || bytes.Contains(got, raw) {
						t.Errorf("server %d tells its ensemble's id: %s", m.ID, got)
					}
					if bytes.Contains(got, []byte(`"disks"`)) || bytes.Contains(got, []byte(`"disk":`)) && !bytes.Contains(got, []byte(`"disk":0`)) {
						t.Errorf("server %d tells of its disk: %s", m.ID, got)
					}
				}
			}
		}
		for range 100 {
			m := c.list[rnd.IntN(3)]
			p.Attack(t.Context(), m.QuorumAddr, string(membership.FounderID(m.ID)))
		}
		if now := string(leader.Membership()); now != config {
			t.Errorf("the membership was %q and is %q", config, now)
		}
		for _, s := range leader.replica.Raft().GetConfiguration().Configuration().Servers {
			if s.ID != membership.FounderID(membership.ServerOf(s.ID)) {
				t.Errorf("%s has a place in Raft's configuration", s.ID)
			}
		}
	})
}
