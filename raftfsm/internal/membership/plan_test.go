package membership

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
)

// planKind is a server in the plan tests: its current role, its target role, and
// whether it is live. Servers of the same kind are interchangeable in a plan, so all
// sets of servers up to a size are the multisets of kinds.
type planKind struct {
	now, then planRole
	live      bool
}

// planRole is a server's role in a configuration or a membership.
type planRole uint8

const (
	absent planRole = iota
	observing
	voting
)

func planKinds() []planKind {
	var all []planKind
	for now := absent; now <= voting; now++ {
		for then := absent; then <= voting; then++ {
			if now+then > 0 {
				all = append(all, planKind{now, then, false}, planKind{now, then, true})
			}
		}
	}
	return all
}

// multisets calls f with every multiset of size k of the kinds.
func multisets(kinds []planKind, k int, f func([]planKind)) {
	set := make([]planKind, k)
	var fill func(i, from int)
	fill = func(i, from int) {
		if i == k {
			f(set)
			return
		}
		for j := from; j < len(kinds); j++ {
			set[i] = kinds[j]
			fill(i+1, j)
		}
	}
	fill(0, 0)
}

// inputOf returns the input of the plan. Server i+1 has kind set[i].
func inputOf(set []planKind, leader int) *Change {
	p := &Change{Target: &List{}, Live: make(map[raft.ServerID]bool), Leader: FounderID(uint64(leader) + 1)}
	for i, k := range set {
		s := raft.Server{ID: FounderID(uint64(i) + 1), Address: raft.ServerAddress(fmt.Sprint("s", i+1, ":2888"))}
		if k.now == observing {
			s.Suffrage = raft.Nonvoter
		}
		switch {
		case k.now != absent:
			p.Servers = append(p.Servers, s)
			p.Live[s.ID] = k.live
		case k.live && k.then != absent:
			p.Joiners = append(p.Joiners, s)
			p.Live[s.ID] = true
		}
		if k.then != absent {
			p.Target.Members = append(p.Target.Members, Member{ID: uint64(i) + 1, Observer: k.then == observing})
		}
	}
	return p
}

// possible searches all orders of all single vote changes: can the voters become exactly
// the target's voters while more than half are live at all times?
func possible(set []planKind) bool {
	var live, from, to uint
	for i, k := range set {
		bit := uint(1) << i
		if k.live {
			live |= bit
		}
		if k.now == voting {
			from |= bit
		}
		if k.then == voting {
			to |= bit
		}
	}
	alive := func(voters uint) bool {
		up, all := 0, 0
		for i := range set {
			if voters>>i&1 == 1 {
				all++
				up += int(live >> i & 1)
			}
		}
		return up > all/2
	}
	if !alive(from) {
		return false
	}
	var seen [1 << maxPlanned]bool
	queue := []uint{from}
	seen[from] = true
	for len(queue) > 0 {
		at := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if at == to {
			return true
		}
		for i := range set {
			if next := at ^ 1<<i; !seen[next] && alive(next) {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return false
}

// maxPlanned is the largest number of servers tested exhaustively.
const maxPlanned = 7

// TestEveryPlan checks the plans for all sets of up to seven servers that are voters,
// observers or no members, with any subset down, any target, and any live voter as the
// leader. A plan passes only through live configurations and ends at the target. It is
// refused only if a search over all orders finds no way either.
func TestEveryPlan(t *testing.T) {
	most := maxPlanned
	if testing.Short() {
		most = 5
	}
	kinds := planKinds()
	plans, refused := 0, 0
	for n := 1; n <= most; n++ {
		multisets(kinds, n, func(set []planKind) {
			if t.Failed() {
				return
			}
			want := possible(set)
			for leader, k := range set {
				if k.now != voting || !k.live || leader > 0 && set[leader-1] == k {
					continue
				}
				plans++
				if !want {
					refused++
				}
				if err := checkPlan(set, leader, want); err != nil {
					t.Errorf("%+v, led by server %d: %v", set, leader+1, err)
					return
				}
			}
		})
	}
	t.Logf("%d plans, %d of them refused", plans, refused)
	if plans == 0 || refused == 0 || refused == plans {
		t.Errorf("%d plans, %d of them refused: this shows nothing", plans, refused)
	}
}

// checkPlan carries out one plan.
func checkPlan(set []planKind, leader int, want bool) error {
	p := inputOf(set, leader)
	steps, ok := p.Plan()
	if ok != want {
		return fmt.Errorf("plan %v, ok %t, but a search over all orders says %t", steps, ok, want)
	}
	servers, leads := p.Servers, p.Leader
	for i, s := range steps {
		switch {
		case s.Kind == HandOver:
			heir := slices.IndexFunc(servers, func(x raft.Server) bool {
				return x.Suffrage == raft.Voter && p.Live[x.ID] && p.Target.votes(ServerOf(x.ID))
			})
			if heir < 0 {
				return fmt.Errorf("plan %v: no server can take the lead at step %d", steps, i+1)
			}
			leads = servers[heir].ID
			continue
		case s.Kind != AddServer && s.Kind != GiveVote && s.ID == leads:
			return fmt.Errorf("plan %v: step %d takes the vote of the leader", steps, i+1)
		case s.Kind == GiveVote && !p.Live[s.ID]:
			return fmt.Errorf("plan %v: step %d gives a vote to a server that is down", steps, i+1)
		}
		before := servers
		servers = s.After(servers)
		if len(before) == len(servers) && slices.Equal(before, servers) {
			return fmt.Errorf("plan %v: step %d changes nothing", steps, i+1)
		}
		if !Majority(servers, p.Live) {
			return fmt.Errorf("plan %v: no live majority after step %d", steps, i+1)
		}
	}
	if !want {
		return nil
	}
	for i, k := range set {
		id := FounderID(uint64(i) + 1)
		has := slices.ContainsFunc(servers, func(x raft.Server) bool { return x.ID == id && x.Suffrage == raft.Voter })
		// A server that is down and has no vote gets it when it is back.
		if shall := k.then == voting && (k.live || k.now == voting); has != shall {
			return fmt.Errorf("plan %v: in the end server %d has a vote: %t, want %t", steps, i+1, has, shall)
		}
	}
	return nil
}

// TestPlanOfANewDisk: a server that lost its disk is removed before the server on the new
// disk joins. So is a dead server if a new server has its address.
func TestPlanOfANewDisk(t *testing.T) {
	t.Parallel()
	set := []planKind{{voting, voting, true}, {voting, voting, true}, {voting, voting, false}}
	p := inputOf(set, 0)
	p.Joiners = []raft.Server{{ID: JoinerID(3, 77), Address: "s3:2888"}}
	want := []Step{{DropServer, "3"}, {AddServer, "3.77"}, {GiveVote, "3.77"}}
	if steps, ok := p.Plan(); !ok || !slices.Equal(steps, want) {
		t.Errorf("a new disk: %v %t, want %v", steps, ok, want)
	}

	set[2].then = absent
	p = inputOf(set, 0)
	p.Target.Members = append(p.Target.Members, Member{ID: 4})
	p.Joiners = []raft.Server{{ID: "4.5", Address: "s3:2888"}}
	want = []Step{{DropServer, "3"}, {AddServer, "4.5"}, {GiveVote, "4.5"}}
	if steps, ok := p.Plan(); !ok || !slices.Equal(steps, want) {
		t.Errorf("a new server at an old address: %v %t, want %v", steps, ok, want)
	}
}
