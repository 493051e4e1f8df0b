package raftfsm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

// How an ensemble forms. An empty server does nothing on its own: the same
// list of servers on three empty disks may mean a first start, or two wiped
// members of an ensemble whose third still holds acknowledged data.
//
//  1. Everybody asks everybody on its list. Once a majority of the listed
//     voters, itself included, answered "no Raft state, same list", and nobody
//     answered with another list or an ensemble, the highest id among them
//     proposes a founding: a random cluster id, the list, and the disks that
//     were seen to be empty.
//  2. The voters agree on one founding (ballot.go): whatever they have accepted
//     one by one, two foundings are never chosen, and none keeps a majority that
//     reaches one another from choosing one. Whoever is named in it with its own
//     disk carries it out: all write the same first entry into their logs.
//  3. Everybody else, among them whoever comes too late and whoever lost its
//     disk, asks the leader to let it in, as a server that never was there.
//
// Invariant: a ServerID without a disk in it belongs to the one disk that the
// founding names. A wiped disk cannot be taken for it.
type formation struct {
	self    Member
	members []Member
	// clientPort and level are for others to know.
	clientPort int
	level      uint32
	hub        *quorum.Hub
	store      *seatStore
	// settle makes this server's identity durable and public, before it is used.
	settle func(id raft.ServerID, cluster quorum.ClusterID) error
	log    *slog.Logger
	// leads says who leads, once this server has Raft state; addr is empty when
	// that is not known.
	leads func() (leading bool, leader uint64, addr string)
	// join handles the wish of another server to become a member, and says why it
	// cannot be.
	join func(p *probe, from quorum.Identity) (refusal string)

	mu      sync.Mutex
	phase   phase
	id      raft.ServerID // once phase is phaseMember
	since   time.Time     // when a majority was first seen empty
	table   map[uint64]sighting
	changed chan struct{} // capacity 1
	asking  bool          // not in Raft's configuration: ask to be let in
	token   uint64        // what an admission has to say
	granted *admission    // the newest one

	// Ballots, see ballot.go.
	fixed    bool          // has its place: promises and accepts nothing more
	attempts int           // ballots begun
	patience time.Time     // until then no other ballot is begun
	hurried  chan struct{} // closed when the others should be asked at once
}

// sighting is the newest answer of one server on the list.
type sighting struct {
	probe
	quorum.Identity
	at    time.Time
	wrong bool // it has another list
}

const (
	// askFirst is the pause between the first two questions to the same server;
	// each one after doubles, up to the next two. Servers that are started
	// together find one another in the time that they take to start.
	askFirst = 2 * time.Millisecond
	// askEvery is the pause between two questions to the same server.
	askEvery = 40 * time.Millisecond
	// askSlowly is the pause for a server that cannot be reached.
	askSlowly = 250 * time.Millisecond
	// freshFor is how long an answer counts.
	freshFor = 3 * time.Second
	// grace is how long a majority waits for the rest of the list.
	grace = 250 * time.Millisecond
)

var errWaiting = errors.New("not decided yet")

// run asks around until the server may start its Raft: founded tells that it
// has to write the founding's first entry.
func (f *formation) run(ctx context.Context) (founded bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	f.askAll(ctx, &wg)
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		founded, err := f.decide(time.Now())
		if !errors.Is(err, errWaiting) {
			return founded, err
		}
		select {
		case <-f.changed:
		case <-tick.C:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// askAll starts to ask every other server on the list, over and over.
func (f *formation) askAll(ctx context.Context, wg *sync.WaitGroup) {
	for _, m := range f.members {
		if m.ID == f.self.ID {
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			f.askOne(ctx, m)
		}()
	}
}

func (f *formation) askOne(ctx context.Context, m Member) {
	for pause := askFirst; ; pause = min(2*pause, askSlowly) {
		delay, hurried := askEvery, f.hurriedNow()
		if f.phaseNow() == phaseMember {
			delay = askSlowly
		}
		if !f.askOnce(ctx, m.ID, m.QuorumAddr) {
			delay = askSlowly
		}
		t := time.NewTimer(min(pause, delay))
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		case <-hurried:
			t.Stop()
		}
	}
}

// hurry makes everybody be asked, and told, at once. f.mu is held.
func (f *formation) hurry() {
	if f.hurried != nil {
		close(f.hurried)
	}
	f.hurried = make(chan struct{})
}

// hurriedNow returns what the next hurry closes.
func (f *formation) hurriedNow() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hurried == nil {
		f.hurried = make(chan struct{})
	}
	return f.hurried
}

// askOnce asks the server at addr, and the leader that it names.
func (f *formation) askOnce(ctx context.Context, server uint64, addr string) bool {
	s, ok := f.query(ctx, addr)
	if !ok {
		return false
	}
	if s.ID == server || s.wrong {
		f.note(server, s)
	}
	if !s.Leading && s.Leader != f.self.ID && s.LeaderAddr != "" {
		// The leader need not be on our list.
		if l, ok := f.query(ctx, s.LeaderAddr); ok && l.ID == s.Leader {
			f.note(l.ID, l)
		}
	}
	return true
}

func (f *formation) query(ctx context.Context, addr string) (sighting, bool) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	a, theirs, err := ask(ctx, f.hub, addr, "", &question{Probe: f.describe()})
	s := sighting{Identity: theirs, at: time.Now()}
	if err != nil {
		r := refused(err)
		s.wrong = r != nil && r.Code == quorum.WrongList
		return s, s.wrong
	}
	if a.Probe == nil {
		return s, false
	}
	s.probe = *a.Probe
	return s, true
}

func (f *formation) note(server uint64, s sighting) {
	f.mu.Lock()
	if s.Refusal != "" && s.Refusal != f.table[server].Refusal {
		f.log.Warn("the ensemble does not let this server in", "leader", server, "reason", s.Refusal)
	}
	f.table[server] = s
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// describe is what this server says about itself.
func (f *formation) describe() *probe {
	leading, leader, addr := f.leads()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.token == 0 {
		f.token = randomUint64()
	}
	p := &probe{Token: f.token, ID: f.self.ID, Disk: f.store.seat.Disk, Addr: f.self.QuorumAddr, Observer: f.self.Observer,
		List: string(newMembership(f.members).text()), ClientPort: f.clientPort, Level: f.level,
		Phase: f.phase, Bound: f.store.seat.Bound, Ballot: f.store.seat.Ballot, Promised: f.store.seat.Promised, Leading: leading, Leader: leader, LeaderAddr: addr,
		As: f.id, Join: f.asking}
	if p.As == "" {
		p.As = joinerID(f.self.ID, p.Disk)
	}
	return p
}

// answer is what this server says to a probe. It promises and accepts before, so
// that who asked need not ask again.
func (f *formation) answer(p *probe, from quorum.Identity) *probe {
	f.hear(p, from)
	mine := f.describe()
	// A member that was removed may never have been told, so the leader does not
	// wait for it to ask.
	if mine.Leading && (p.Join || p.Phase == phaseMember) {
		mine.Refusal = f.join(p, from)
	}
	mine.Join, mine.Token = false, 0
	if !f.trusts(p, from, mine) {
		mine.redact()
	}
	return mine
}

// trusts says whether a server that asks may hear more than that there is an
// ensemble and who leads it. A member has proved to be one. A founder that comes
// late proves by its disk that it took part in the founding. While an ensemble
// forms, those on the list have nothing to prove by.
func (f *formation) trusts(p *probe, from quorum.Identity, mine *probe) bool {
	own := f.hub.Identity().Cluster
	switch {
	case own != (quorum.ClusterID{}) && from.Cluster == own:
		return true
	case mine.Phase == phaseMember:
		return p.Disk != 0 && mine.Bound != nil && mine.Bound.Disks[p.ID] == p.Disk
	}
	return slices.ContainsFunc(f.members, func(m Member) bool { return m.ID == p.ID })
}

// redact leaves what every caller may hear.
func (p *probe) redact() {
	*p = probe{ID: p.ID, Level: p.Level, Phase: p.Phase, As: p.As, Leading: p.Leading, Leader: p.Leader, LeaderAddr: p.LeaderAddr, Refusal: p.Refusal}
}

// admit takes the admission of a leader that this server has asked.
func (f *formation) admit(a *admission) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.phase == phaseMember:
		return errors.New("this server is a member of an ensemble")
	case f.token == 0 || a.Token != f.token || a.Cluster == (quorum.ClusterID{}):
		return errors.New("this server has not asked for that")
	case a.ServerID != joinerID(f.self.ID, f.store.seat.Disk):
		return fmt.Errorf("this server is %s", joinerID(f.self.ID, f.store.seat.Disk))
	}
	f.granted = a
	select {
	case f.changed <- struct{}{}:
	default:
	}
	return nil
}

// hear takes note of a server that asks, before either has Raft state.
func (f *formation) hear(p *probe, from quorum.Identity) {
	listed := slices.ContainsFunc(f.members, func(m Member) bool { return m.ID == p.ID && m.ID != f.self.ID })
	if !listed || p.Phase == phaseMember || f.phaseNow() == phaseMember {
		return
	}
	f.note(p.ID, sighting{probe: *p, Identity: from, at: time.Now()})
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.react(time.Now()); err != nil {
		f.log.Warn("a promise could not be written", "err", err)
	}
}

// decide looks at what the others said. errWaiting: nothing follows from it
// yet.
func (f *formation) decide(now time.Time) (founded bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.phase == phaseMember {
		return false, nil
	}
	if f.granted != nil {
		return false, f.admitted(f.granted)
	}
	if err := f.react(now); err != nil {
		return false, err
	}
	if err := f.propose(now); err != nil {
		return false, err
	}
	if b, in := f.chosen(); b != nil {
		return true, f.carryOut(b, in)
	}
	f.asking = f.memberSeen()
	return false, errWaiting
}

// admitted makes this server the one that the leader lets in.
func (f *formation) admitted(a *admission) error {
	f.log.Info("joining the ensemble", "as", string(a.ServerID), "ensemble", a.Cluster.String())
	f.fixed = true
	return f.settle(a.ServerID, a.Cluster)
}

// carryOut makes this server a member of the ensemble that b founds.
func (f *formation) carryOut(b *founding, in ballot) error {
	if in != f.store.seat.Ballot || f.store.seat.Bound == nil || f.store.seat.Bound.Cluster != b.Cluster {
		next := f.store.seat
		next.Ballot, next.Bound = in, b
		if err := f.store.save(next); err != nil {
			return err
		}
	}
	f.fixed = true
	return f.settle(founderID(f.self.ID), b.Cluster)
}

// memberSeen says whether somebody belongs to an ensemble that does not need
// this server for its founding.
func (f *formation) memberSeen() bool {
	for _, s := range f.table {
		if s.Phase == phaseMember && s.Ensemble != (quorum.EnsembleName{}) {
			return true
		}
	}
	return false
}

func (f *formation) majority() int {
	n := 0
	for _, m := range f.members {
		if !m.Observer {
			n++
		}
	}
	return n/2 + 1
}

// first says whether this server is to be the first leader of a new ensemble:
// the highest voter of the founding, as in ZooKeeper.
func (b *founding) first(server uint64) bool {
	return server == slices.MaxFunc(b.Servers, func(x, y founder) int {
		return b.weight(x) - b.weight(y)
	}).ID
}

func (b *founding) weight(s founder) int {
	if s.Observer || b.Disks[s.ID] == 0 {
		return 0
	}
	return int(s.ID) + 1
}

// settled says whether every founder has carried the founding out, as far as
// this server was told.
func (f *formation) settled(b *founding) (members int, all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all = true
	for server := range b.Disks {
		s := f.table[server]
		switch {
		case server == f.self.ID, s.Phase == phaseMember && s.Ensemble == b.Cluster.Name():
			members++
		default:
			all = false
		}
	}
	return members, all
}

// member says that this server has Raft state, as id.
func (f *formation) member(id raft.ServerID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.phase, f.id = phaseMember, id
}

// ask sets whether this server asks to be let into Raft's configuration.
func (f *formation) ask(asking bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asking = asking
}

func (f *formation) phaseNow() phase {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.phase
}

// held is the seat of the moment: others ask for promises at any time.
func (f *formation) held() seat {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.store.seat
}

// taken notes that Raft state exists: a server that is found without it later
// has lost it, and with it its place.
func (f *formation) taken() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.store.seat.Taken {
		return nil
	}
	s := f.store.seat
	s.Taken = true
	return f.store.save(s)
}
