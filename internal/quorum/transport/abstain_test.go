package transport

import (
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

func discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// TestLeaderThatCannotReplicateGivesWay drops the leader's large packets while heartbeats
// pass. Another server leads within ten seconds, even if only the first leader has the
// newest entry, and the first leader doesn't lead again while the path is bad.
func TestLeaderThatCannotReplicateGivesWay(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"200 bytes": 200, "1400 bytes": 1400} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := quorum.NewMemory()
				nodes := startRaft(t, m, 3, nil)
				leader := leaderOf(t, nodes)
				applied(t, leader, "before")
				var rest []*node
				for _, n := range nodes {
					if n != leader {
						rest = append(rest, n)
						m.Lose(leader.host, n.host, size)
					}
				}
				began := time.Now()
				lost := leader.raft.Apply(make([]byte, 4000), 0)
				if lost.Error() == nil {
					t.Fatal("a large entry was committed")
				}
				next := leaderOf(t, rest)
				if took := applied(t, next, string(make([]byte, 4000))); took > time.Second {
					t.Errorf("a large entry took %v under the new leader", took)
				}
				if took := time.Since(began); took > 8*time.Second {
					t.Errorf("the other server led after %v", took)
				}
				term := next.raft.CurrentTerm()
				for range 60 {
					time.Sleep(time.Second)
					applied(t, next, "more")
				}
				if now := next.raft.CurrentTerm(); now != term {
					t.Errorf("%d more elections", now-term)
				}
			})
		})
	}
}

// TestLeaderWithoutAlternativeLeadsAgain: the other servers can't be elected without the
// vote of the server with the longest log.
func TestLeaderWithoutAlternativeLeadsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		nodes := startRaft(t, m, 2, nil)
		leader := leaderOf(t, nodes)
		other := nodes[0]
		if other == leader {
			other = nodes[1]
		}
		applied(t, leader, "before")
		m.Lose(leader.host, other.host, 1400)
		if leader.raft.Apply(make([]byte, 4000), 0).Error() == nil {
			t.Fatal("a large entry was committed")
		}
		began := time.Now()
		if leaderOf(t, nodes) != leader {
			t.Fatal("a server with a shorter log leads")
		}
		if took := time.Since(began); took > 2*leaderlessGrace {
			t.Errorf("it led again after %v", took)
		}
		m.Heal(leader.host, other.host)
		eventually(t, "a leader that commits", func() bool {
			l := leaderOf(t, nodes)
			return l.raft.Apply([]byte("after"), 0).Error() == nil
		})
	})
}

// TestSlowFollowersAreNoReasonToGiveWay: the followers' disks are slower than the limit,
// and the followers report that.
func TestSlowFollowersAreNoReasonToGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := startRaft(t, quorum.NewMemory(), 3, nil)
		leader := leaderOf(t, nodes)
		applied(t, leader, "before")
		term := leader.raft.CurrentTerm()
		gates := make(map[*node]chan struct{})
		for _, n := range nodes {
			if n != leader {
				gates[n] = make(chan struct{})
				n.log.hold(gates[n])
			}
		}
		f := leader.raft.Apply([]byte("slow"), 0)
		time.Sleep(20 * time.Second)
		for n, gate := range gates {
			n.log.hold(nil)
			close(gate)
		}
		if err := f.Error(); err != nil || leader.raft.CurrentTerm() != term {
			t.Errorf("%v, term %d after %d", err, leader.raft.CurrentTerm(), term)
		}
	})
}

func TestAbstention(t *testing.T) {
	t.Parallel()
	var a abstention
	now := time.Now()
	if a.holds(now) || !a.begin(7, now) || a.begin(7, now) || !a.holds(now) {
		t.Error("it begins once in a term")
	}
	if a.holds(now.Add(leaderlessGrace)) {
		t.Error("it holds though no server leads")
	}
	a.heardLeader(now.Add(30 * time.Second))
	if !a.holds(now.Add(32*time.Second)) || a.holds(now.Add(30*time.Second+leaderlessGrace)) || !a.helped() {
		t.Error("it holds as long as another leader was heard lately")
	}
	a.heardLeader(now.Add(2 * abstainFor))
	if a.holds(now.Add(2 * abstainFor)) {
		t.Error("it holds for ever")
	}
	a.begin(9, now)
	a.end(8)
	if !a.holds(now.Add(2 * time.Minute).Add(-2 * time.Minute)) {
		t.Error("another leadership ends it")
	}
	a.end(9)
	if a.holds(now) {
		t.Error("it holds for a leader that replicates")
	}
	a.begin(11, now)
	a.over()
	if a.holds(now) {
		t.Error("it holds for a server whose large packets arrive")
	}
}

func TestStuckIsAboutAQuorum(t *testing.T) {
	t.Parallel()
	var p paths
	now := time.Now()
	conf := raft.Configuration{Servers: []raft.Server{{ID: "1"}, {ID: "2"}, {ID: "3"}, {ID: "4", Suffrage: raft.Nonvoter}}}
	fail := func(id raft.ServerID, ago time.Duration) { p.failed(5, id, now.Add(-ago)) }
	check := func(want time.Duration) {
		t.Helper()
		if got := p.stuck(5, conf, "1", now, failuresInARow); got != want {
			t.Errorf("stuck for %v, want %v", got, want)
		}
	}
	check(0)
	fail("2", 9*time.Second)
	fail("2", 8*time.Second)
	fail("4", 9*time.Second)
	fail("4", 9*time.Second)
	check(0) // voters 1 and 3 remain
	fail("3", 4*time.Second)
	check(0) // one failure may come from an old connection
	fail("3", 2*time.Second)
	check(4 * time.Second)
	p.works(4, "3")
	check(4 * time.Second)
	p.works(5, "3")
	check(0)
	if p.failed(4, "3", now) || p.some(4) {
		t.Error("an older term counts")
	}
}
