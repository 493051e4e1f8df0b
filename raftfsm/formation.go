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
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// How an ensemble forms. An empty server does nothing on its own: an empty disk may mean
// a first start, or that the server is one of two wiped members of an ensemble whose
// third member still holds acknowledged data.
//
//  1. Every server asks all servers on its list. Once a majority of the listed
//     voters, itself included, has answered "no Raft state, same list", and no server
//     has answered with another list or as a member of an ensemble, the voter with the
//     highest id proposes a founding: a random cluster id, the list, and the disks
//     that it has seen to be empty.
//  2. The voters agree on one founding (ballot.go). Whatever they have accepted so
//     far, two foundings are never chosen, and a majority whose servers reach one
//     another can always choose one. Each server whose disk the founding names carries
//     it out: all of them write the same first entry to their logs.
//  3. All other servers, e.g. one that starts late or has lost its disk, ask the
//     leader to admit them as new servers.
//
// Invariant: a ServerID that contains no disk id belongs to the one disk that the
// founding names. No server with a wiped disk can be taken for that server.
type formation struct {
	self    membership.Member
	members []membership.Member
	// clientPort and level are reported to other servers.
	clientPort int
	level      uint32
	hub        *quorum.Hub
	store      *seatStore
	// settle makes this server's identity durable and public before it is used.
	settle func(id raft.ServerID, cluster quorum.ClusterID) error
	log    *slog.Logger
	// leads returns the leader, once this server has Raft state; addr is empty if this
	// server doesn't know the leader.
	leads func() (leading bool, leader uint64, addr string)
	// join handles another server's request to become a member. It returns the reason if
	// it refuses.
	join func(p *probe, from quorum.Identity) (refusal string)

	mu      sync.Mutex
	phase   phase
	id      raft.ServerID // once phase is phaseMember
	since   time.Time     // when a majority of empty servers was first seen
	table   map[uint64]sighting
	changed chan struct{} // capacity 1
	asking  bool          // not in Raft's configuration: ask to be admitted
	token   uint64        // an admission has to repeat it
	granted *admission    // the newest admission

	// Ballots, see ballot.go.
	fixed    bool          // this server is a member: it promises and accepts nothing more
	attempts int           // ballots started
	patience time.Time     // no other ballot starts before this time
	hurried  chan struct{} // closed when the other servers should be asked at once
}

// sighting is the newest answer of one server on the list.
type sighting struct {
	probe
	quorum.Identity
	at    time.Time
	wrong bool // the server has another list
}

const (
	// askFirst is the pause between the first two questions to the same server. Each
	// later pause doubles, up to askEvery or askSlowly. So servers that start together
	// find one another without delay.
	askFirst = 2 * time.Millisecond
	// askEvery is the pause between two questions to the same server.
	askEvery = 40 * time.Millisecond
	// askSlowly is the pause for a server that can't be reached.
	askSlowly = 250 * time.Millisecond
	// freshFor is how long an answer is valid.
	freshFor = 3 * time.Second
	// grace is how long a majority waits for the rest of the list.
	grace = 250 * time.Millisecond
)

var errWaiting = errors.New("not decided yet")

// run asks the other servers until this server may start its Raft. founded means that it
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

// askAll starts goroutines that ask every other server on the list repeatedly.
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

func (f *formation) askOne(ctx context.Context, m membership.Member) {
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

// hurry makes this server probe all other servers at once. The caller holds f.mu.
func (f *formation) hurry() {
	if f.hurried != nil {
		close(f.hurried)
	}
	f.hurried = make(chan struct{})
}

// hurriedNow returns the channel that the next hurry closes.
func (f *formation) hurriedNow() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hurried == nil {
		f.hurried = make(chan struct{})
	}
	return f.hurried
}

// askOnce asks the server at addr, and the leader that this server names.
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

// describe returns what this server reports about itself.
func (f *formation) describe() *probe {
	leading, leader, addr := f.leads()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.token == 0 {
		f.token = randomUint64()
	}
	p := &probe{Token: f.token, ID: f.self.ID, Disk: f.store.seat.Disk, Addr: f.self.QuorumAddr, Observer: f.self.Observer,
		List: string(membership.New(f.members).Text()), ClientPort: f.clientPort, Level: f.level,
		Phase: f.phase, Bound: f.store.seat.Bound, Ballot: f.store.seat.Ballot, Promised: f.store.seat.Promised, Leading: leading, Leader: leader, LeaderAddr: addr,
		As: f.id, Join: f.asking}
	if p.As == "" {
		p.As = membership.JoinerID(f.self.ID, p.Disk)
	}
	return p
}

// answer returns the reply to a probe. It promises and accepts first, so that the server
// that asked needn't ask again.
func (f *formation) answer(p *probe, from quorum.Identity) *probe {
	f.hear(p, from)
	mine := f.describe()
	// A removed member may not know about its removal, so the leader doesn't wait for it
	// to ask.
	if mine.Leading && (p.Join || p.Phase == phaseMember) {
		mine.Refusal = f.join(p, from)
	}
	mine.Join, mine.Token = false, 0
	if !f.trusts(p, from, mine) {
		mine.redact()
	}
	return mine
}

// trusts reports whether a server that asks may learn more than that there is an ensemble
// and which server leads it. A member has proved its membership. A late founder proves
// by its disk id that it took part in the founding. While an ensemble forms, the servers
// on the list can't prove anything, so all of them are trusted.
func (f *formation) trusts(p *probe, from quorum.Identity, mine *probe) bool {
	own := f.hub.Identity().Cluster
	switch {
	case own != (quorum.ClusterID{}) && from.Cluster == own:
		return true
	case mine.Phase == phaseMember:
		return p.Disk != 0 && mine.Bound != nil && mine.Bound.Disks[p.ID] == p.Disk
	}
	return slices.ContainsFunc(f.members, func(m membership.Member) bool { return m.ID == p.ID })
}

// redact removes everything that not every caller may see.
func (p *probe) redact() {
	*p = probe{ID: p.ID, Level: p.Level, Phase: p.Phase, As: p.As, Leading: p.Leading, Leader: p.Leader, LeaderAddr: p.LeaderAddr, Refusal: p.Refusal}
}

// admit handles an admission from the leader that this server has asked.
func (f *formation) admit(a *admission) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.phase == phaseMember:
		return errors.New("this server is a member of an ensemble")
	case f.token == 0 || a.Token != f.token || a.Cluster == (quorum.ClusterID{}):
		return errors.New("this server has not asked for that")
	case a.ServerID != membership.JoinerID(f.self.ID, f.store.seat.Disk):
		return fmt.Errorf("this server is %s", membership.JoinerID(f.self.ID, f.store.seat.Disk))
	}
	f.granted = a
	select {
	case f.changed <- struct{}{}:
	default:
	}
	return nil
}

// hear records a probe from a listed server while neither server has Raft state.
func (f *formation) hear(p *probe, from quorum.Identity) {
	listed := slices.ContainsFunc(f.members, func(m membership.Member) bool { return m.ID == p.ID && m.ID != f.self.ID })
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

// decide acts on the other servers' reports. It returns errWaiting while they allow no
// decision.
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

// admitted gives this server the identity from its admission.
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
	return f.settle(membership.FounderID(f.self.ID), b.Cluster)
}

// memberSeen reports whether this server has heard from a member of an ensemble.
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

// first reports whether server should be the first leader of a new ensemble: the voter
// with the highest id in the founding, as in ZooKeeper.
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

// settled returns the number of founders that are known to have carried out the
// founding, and whether these are all of them.
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

// member records that this server has Raft state under the given id.
func (f *formation) member(id raft.ServerID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.phase, f.id = phaseMember, id
}

// ask sets whether this server asks to be added to Raft's configuration.
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

// held returns the current seat. A probe from another server may change it at any time.
func (f *formation) held() seat {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.store.seat
}

// taken records durably that Raft state exists. If the state is missing later, the server
// has lost it and is no longer a member.
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
