package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// nursery is a set of servers that only form an ensemble. A server that has become a
// member admits the servers that the plan doesn't name.
type nursery struct {
	t       *testing.T
	net     *quorum.Memory
	members []membership.Member
	dir     string

	mu      sync.Mutex
	running map[uint64]*infant
	places  map[uint64][]place // by server, one per life
	crash   func(server uint64, written int, after bool) bool
	writes  map[uint64]int
}

// place is the identity that a server got.
type place struct {
	id      raft.ServerID
	cluster quorum.ClusterID
}

// infant is one run of a server, from start to stop.
type infant struct {
	f      *Formation
	hub    *quorum.Hub
	cancel context.CancelFunc
	done   chan struct{}
}

func newNursery(t *testing.T, voters, observers int) *nursery {
	n := &nursery{t: t, net: quorum.NewMemory(), dir: t.TempDir(), running: make(map[uint64]*infant), places: make(map[uint64][]place), writes: make(map[uint64]int)}
	for id := uint64(1); id <= uint64(voters+observers); id++ {
		m := memberAt(id)
		m.Observer = id > uint64(voters)
		n.members = append(n.members, m)
	}
	return n
}

func hostOf(id uint64) string { return fmt.Sprintf("s%d", id) }

func memberAt(id uint64) membership.Member {
	return membership.Member{ID: id, QuorumAddr: hostOf(id) + ":2888", ElectionAddr: hostOf(id) + ":3888"}
}

// crashing is a file system that crashes its server before or after a rename.
type crashing struct {
	vfs.FS
	n  *nursery
	id uint64
}

var errCrash = errors.New("the server crashes")

func (c crashing) Rename(from, to string) error {
	c.n.mu.Lock()
	c.n.writes[c.id]++
	w, crash := c.n.writes[c.id], c.n.crash
	c.n.mu.Unlock()
	if crash != nil && crash(c.id, w, false) {
		return errCrash
	}
	if err := c.FS.Rename(from, to); err != nil {
		return err
	}
	if crash != nil && crash(c.id, w, true) {
		return errCrash
	}
	return nil
}

// OpenFile and SyncDir skip the fsyncs, which are slow and don't matter for these tests.
func (c crashing) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	return unsynced{f}, err
}

func (c crashing) SyncDir(string) error { return nil }

type unsynced struct{ vfs.File }

func (unsynced) Sync() error     { return nil }
func (unsynced) Datasync() error { return nil }

func (n *nursery) disk(id uint64) string { return filepath.Join(n.dir, fmt.Sprint(id)) }

// prepare writes the bootstrap state of a server before it starts.
func (n *nursery) prepare(id uint64, s State) {
	n.t.Helper()
	if err := os.MkdirAll(n.disk(id), 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := Write(crashing{vfs.OS{}, n, id}, n.disk(id), s); err != nil {
		n.t.Fatal(err)
	}
	n.writes[id] = 0
}

// start starts a server. A server that already has a place starts as a member.
func (n *nursery) start(id uint64) {
	fsys := crashing{vfs.OS{}, n, id}
	if err := os.MkdirAll(n.disk(id), 0o755); err != nil {
		n.t.Error(err)
		return
	}
	store, err := Open(fsys, n.disk(id))
	if err != nil {
		if errors.Is(err, errCrash) {
			go n.later(id)
			return
		}
		n.t.Error(err)
		return
	}
	log := slog.New(slog.DiscardHandler)
	i := n.members[slices.IndexFunc(n.members, func(m membership.Member) bool { return m.ID == id })]
	self := quorum.Identity{ServerID: string(membership.FounderID(id)), List: ListHash(n.members), Nonce: rand.Uint64()}
	hub, err := quorum.Listen(n.net.Host(hostOf(id)), i.QuorumAddr, self, quorum.Security{}, log)
	if err != nil {
		n.t.Error(err)
		return
	}
	in := &infant{hub: hub, done: make(chan struct{})}
	var f *Formation
	var became place
	env := Env{Self: i, Members: n.members, Hub: hub, Log: log, Called: func(*Probe, quorum.Identity, net.Addr) {}}
	env.Settle = func(as raft.ServerID, cluster quorum.ClusterID) error {
		became = place{as, cluster}
		return nil
	}
	env.Leads = func() (bool, uint64, string) { return f.phaseNow() == PhaseMember, id, i.QuorumAddr }
	env.Join = func(p *Probe, _ quorum.Identity) string {
		if p.Join {
			at := n.members[slices.IndexFunc(n.members, func(m membership.Member) bool { return m.ID == p.ID })].QuorumAddr
			go func() {
				_ = (&Admission{hub.Identity().Cluster, p.As, p.Token}).Offer(context.Background(), hub, at)
			}()
		}
		return ""
	}
	f = New(env, store, "")
	in.f = f
	hub.Handle(quorum.Probe, f.Serve)
	ctx, cancel := context.WithCancel(context.Background())
	in.cancel = cancel
	n.mu.Lock()
	n.running[id] = in
	n.mu.Unlock()
	go func() {
		defer close(in.done)
		n.mu.Lock()
		was := slices.Clone(n.places[id])
		n.mu.Unlock()
		if len(was) > 0 {
			f.mu.Lock()
			became, f.fixed = was[0], true
			f.mu.Unlock()
		} else if _, err := f.Run(ctx); err != nil {
			if errors.Is(err, errCrash) {
				_ = hub.Close()
				go n.later(id)
			}
			return
		}
		n.mu.Lock()
		n.places[id] = append(n.places[id], became)
		n.mu.Unlock()
		self.ServerID, self.Cluster = string(became.id), became.cluster
		hub.SetIdentity(self)
		f.SetMember(became.id)
	}()
}

// later restarts a crashed server after a pause.
func (n *nursery) later(id uint64) {
	time.Sleep(700 * time.Millisecond)
	n.start(id)
}

// stop stops a server.
func (n *nursery) stop(id uint64) {
	n.mu.Lock()
	in := n.running[id]
	delete(n.running, id)
	n.mu.Unlock()
	if in != nil {
		in.cancel()
		_ = in.hub.Close()
		<-in.done
	}
}

func (n *nursery) stopAll() {
	for _, m := range n.members {
		n.stop(m.ID)
	}
}

// clusters returns all ensembles that have formed, and how many servers have a place.
func (n *nursery) clusters() (all []quorum.ClusterID, placed int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.members {
		for i, p := range n.places[m.ID] {
			if i == 0 {
				placed++
			}
			if !slices.Contains(all, p.cluster) {
				all = append(all, p.cluster)
			}
		}
	}
	return all, placed
}

// await waits until the given number of servers have a place, all in one ensemble.
func (n *nursery) await(what string, servers int) quorum.ClusterID {
	n.t.Helper()
	var all []quorum.ClusterID
	err := wait.For(2*time.Minute, what, func() (bool, error) {
		var placed int
		if all, placed = n.clusters(); len(all) > 1 {
			return false, fmt.Errorf("%d ensembles: %v", len(all), n.places)
		}
		return placed >= servers, nil
	})
	if err != nil {
		for id, in := range n.running {
			n.t.Logf("server %d: %+v", id, in.f.Describe())
		}
		n.t.Fatal(err)
	}
	return all[0]
}

// disksOf returns the disk ids for tests that write the bootstrap states.
func (n *nursery) disksOf() map[uint64]uint64 {
	all := make(map[uint64]uint64)
	for _, m := range n.members {
		all[m.ID] = 1000 + m.ID
	}
	return all
}

func (n *nursery) plan(mark int, disks map[uint64]uint64) *Plan {
	return &Plan{Cluster: quorum.ClusterID{byte(mark)}, List: ListHash(n.members), Servers: serversOf(n.members), Disks: maps.Clone(disks)}
}

// partitions calls do with every way to spread n servers over plans. of has an element
// per server: the number of the plan that it accepted, or 0 for none.
func partitions(n int, do func(of []int)) {
	of := make([]int, n)
	var fill func(i, used int)
	fill = func(i, used int) {
		if i == n {
			do(slices.Clone(of))
			return
		}
		for x := 0; x <= used+1; x++ {
			of[i] = x
			fill(i+1, max(used, x))
		}
	}
	fill(0, 0)
}

// rankOf orders plans by how many servers accepted them.
func rankOf(of []int, x int) int { return 10*counts(of)[x] + x }

// counts returns how many servers accepted each plan.
func counts(of []int) (n []int) {
	n = make([]int, len(of)+1)
	for _, x := range of {
		n[x]++
	}
	return n
}

// TestEverySplitResolves tries every way in which voters can have accepted different
// plans: as in releases without ballots, all in ballot zero, and each plan in its
// own ballot. It starts a bare majority of the voters, or all, and then the rest.
func TestEverySplitResolves(t *testing.T) {
	t.Parallel()
	sizes := []int{3, 5}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, voters := range sizes {
		partitions(voters, func(of []int) {
			if voters > 3 && !slices.IsSortedFunc(of, func(a, b int) int { return cmp.Compare(rankOf(of, a), rankOf(of, b)) }) {
				return // the same case with the servers renumbered
			}
			t.Run(fmt.Sprint(of), func(t *testing.T) {
				t.Parallel()
				for _, old := range []bool{true, false} {
					for _, late := range [][]uint64{nil, {1}, {3}, {2, 3}} {
						if (late == nil || (voters == 3) == (len(late) == 1)) && reachable(of, old) {
							synctest.Test(t, func(t *testing.T) { testSplit(t, of, old, late) })
						}
					}
				}
			})
		})
	}
}

// reachable reports whether voters can get into this state: above the ballot of a chosen
// plan, no other plan is accepted.
func reachable(of []int, old bool) bool {
	n := counts(of)
	for x := 1; x < len(n); x++ {
		if !old && n[x] > len(of)/2 && slices.Max(of) > x {
			return false
		}
	}
	return true
}

func testSplit(t *testing.T, of []int, old bool, late []uint64) {
	what := fmt.Sprintf("%v, old %t, without %v", of, old, late)
	n := newNursery(t, len(of), 0)
	defer n.stopAll()
	chosen := 0
	for i, x := range of {
		id := uint64(i + 1)
		s := State{Disk: n.disksOf()[id]}
		if x > 0 {
			s.Bound = n.plan(x, n.disksOf())
			if !old {
				s.Ballot = n.ballotOf(of, x)
			}
			if counts(of)[x] > len(of)/2 {
				chosen = x
			}
		}
		if !old {
			// A majority promised the highest ballot before a plan was accepted in it,
			// so no voter accepts a plan in a lower ballot anymore.
			s.Promised = n.ballotOf(of, slices.Max(of))
		}
		n.prepare(id, s)
	}
	for i := range of {
		if id := uint64(i + 1); !slices.Contains(late, id) {
			n.start(id)
		}
	}
	early := len(of) - len(late)
	if ambiguous(of, old, late) {
		time.Sleep(10 * time.Second)
		if all, _ := n.clusters(); len(all) > 1 {
			t.Fatalf("%s: %d ensembles", what, len(all))
		}
	} else {
		n.await(what, early)
	}
	for _, id := range late {
		n.start(id)
	}
	if c := n.await(what, len(of)); chosen > 0 && c[0] != byte(chosen) {
		t.Errorf("%s: came to %v", what, c)
	}
}

// ballotOf returns the ballot of a plan. It belongs to a server that has accepted the
// plan, because the proposer is the first to accept it.
func (n *nursery) ballotOf(of []int, x int) Ballot {
	if x == 0 {
		return Ballot{}
	}
	id := uint64(slices.Index(of, x) + 1)
	return Ballot{uint64(x), id, n.disksOf()[id]}
}

// ambiguous reports whether, with plans from releases without ballots, the running
// servers can't decide on a plan.
func ambiguous(of []int, old bool, late []uint64) bool {
	if !old {
		return false
	}
	here := make([]int, len(of)+1)
	for i, x := range of {
		if !slices.Contains(late, uint64(i+1)) {
			here[x]++
		}
	}
	possible := 0
	for _, k := range here[1:] {
		if k > 0 && k+len(late) > len(of)/2 {
			possible++
		}
	}
	return possible > 1
}

// TestFoundersCrashAtEveryWrite crashes each voter, or all voters, before and after each
// write, and restarts them.
func TestFoundersCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	sizes := []int{3, 5}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, voters := range sizes {
		for who := uint64(0); who <= uint64(voters); who++ { // 0: all servers
			t.Run(fmt.Sprintf("%d of %d", who, voters), func(t *testing.T) {
				t.Parallel()
				for write := 1; write <= 6; write++ {
					for _, after := range []bool{false, true} {
						synctest.Test(t, func(t *testing.T) {
							n := newNursery(t, voters, 1)
							defer n.stopAll()
							n.crash = func(server uint64, written int, then bool) bool {
								return (who == 0 || server == who) && written == write && then == after
							}
							for _, m := range n.members {
								n.start(m.ID)
							}
							n.await(fmt.Sprintf("write %d, after %t", write, after), voters+1)
						})
					}
				}
			})
		}
	}
}

// TestFoundersInAnyWeather forms ensembles over links of varying delay that stop and
// heal, while servers start and stop at random times. There is never more than one
// ensemble, and after all faults end every server is a member.
func TestFoundersInAnyWeather(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { testWeather(t, seed) })
		})
	}
}

func testWeather(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	n := newNursery(t, 3+2*int(seed%2), r.IntN(2))
	defer n.stopAll()
	each := func(do func(a, b string)) {
		for _, x := range n.members {
			for _, y := range n.members {
				if x.ID != y.ID {
					do(hostOf(x.ID), hostOf(y.ID))
				}
			}
		}
	}
	each(func(a, b string) { n.net.Jitter(a, b, time.Duration(r.IntN(400))*time.Millisecond) })
	up := make(map[uint64]bool)
	for range 60 {
		id := uint64(1 + r.IntN(len(n.members)))
		switch x := r.IntN(10); {
		case x < 5 && !up[id]:
			n.start(id)
			up[id] = true
		case x < 4 && up[id]:
			n.stop(id)
			up[id] = false
		case x < 7:
			a, b := hostOf(id), hostOf(uint64(1+r.IntN(len(n.members))))
			if a != b {
				n.net.Hold(a, b)
			}
		default:
			each(func(a, b string) {
				if r.IntN(2) == 0 {
					n.net.Heal(a, b)
				}
			})
		}
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		if all, _ := n.clusters(); len(all) > 1 {
			t.Fatalf("%d ensembles: %v", len(all), n.places)
		}
	}
	each(n.net.Heal)
	for _, m := range n.members {
		if !up[m.ID] {
			n.start(m.ID)
		}
	}
	n.await("in any weather", len(n.members))
}
