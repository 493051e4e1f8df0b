package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm/internal/exchange"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// Env is the interface from a Formation to its server.
type Env struct {
	Self    membership.Member
	Members []membership.Member // the list of the configuration file
	// NeedsAll is set if an ensemble needs all listed voters to form. It protects a list
	// that grows with the ensemble. Otherwise two empty servers that should join a third
	// one could form a separate ensemble while it is down.
	NeedsAll bool
	// ClientPort and Level are reported to other servers.
	ClientPort int
	Level      uint32
	Hub        *quorum.Hub
	Log        *slog.Logger
	// Settle makes this server's identity durable and public before it is used.
	Settle func(id raft.ServerID, cluster quorum.ClusterID) error
	// Leads returns the leader, once this server has Raft state; addr is empty if this
	// server doesn't know the leader.
	Leads func() (leading bool, leader uint64, addr string)
	// Join handles another server's request to become a member. It returns the reason if
	// it refuses.
	Join func(p *Probe, from quorum.Identity) (refusal string)
	// Called receives each probe and its source before the probe is answered.
	Called func(p *Probe, from quorum.Identity, remote net.Addr)
}

// Formation forms an ensemble, or joins one. An empty server does nothing on its own: an
// empty disk may mean a first start, or that two of three members were wiped and the
// third one still has acknowledged data.
//
//  1. Every server asks all servers on its list. Once a majority of the listed
//     voters, itself included, has answered "no Raft state, same list", and no server
//     has answered with another list or as a member of an ensemble, the voter with the
//     highest id proposes a formation plan: a random cluster id, the list, and the disks
//     that it has seen to be empty.
//  2. The voters agree on one plan (ballot.go). Whatever they have accepted so far, two
//     plans are never chosen, and a majority of servers that can reach one another can
//     always choose one. Each server that has its disk in the plan carries it out: these
//     servers write the same first entry to their logs.
//  3. All other servers, e.g. one that starts late or has lost its disk, ask the
//     leader to admit them as new servers.
//
// Invariant: a ServerID that contains no disk id belongs to the disk that the plan names.
// No server with a wiped disk can be mistaken for that server.
type Formation struct {
	env   Env
	store *Store

	mu      sync.Mutex
	phase   Phase
	id      raft.ServerID // once phase is PhaseMember
	since   time.Time     // when a majority of empty servers was first seen
	table   map[uint64]sighting
	changed chan struct{} // capacity 1
	asking  bool          // not in Raft's configuration: ask to be admitted
	token   uint64        // an admission must repeat it
	granted *Admission    // the newest admission

	// Ballots, see ballot.go.
	fixed    bool          // this server is a member: it promises and accepts nothing more
	attempts int           // ballots started
	patience time.Time     // no other ballot starts before this time
	hurried  chan struct{} // closed when the other servers should be asked at once
}

// New returns the formation of the server with the bootstrap state in store. member is
// the server's ServerID if it has Raft state, otherwise empty. Such a server is a member
// even before its Raft runs: if the others mistook it for an empty server, they could
// form an ensemble without its data.
func New(env Env, store *Store, member raft.ServerID) *Formation {
	f := &Formation{env: env, store: store, phase: PhaseEmpty, table: make(map[uint64]sighting), changed: make(chan struct{}, 1)}
	if store.state.Bound != nil {
		f.phase = PhaseBound
	}
	if member != "" {
		f.fixed, f.phase, f.id = true, PhaseMember, member
	}
	return f
}

// sighting is the newest answer of one server on the list.
type sighting struct {
	Probe
	quorum.Identity
	at    time.Time
	wrong bool // the server has another list
}

const (
	// askFirst is the pause between the first two questions to the same server. Each
	// later pause doubles, up to askEvery or AskSlowly. So servers that start together
	// find one another without delay.
	askFirst = 2 * time.Millisecond
	// askEvery is the pause between two questions to the same server.
	askEvery = 40 * time.Millisecond
	// AskSlowly is the pause for a server that can't be reached.
	AskSlowly = 250 * time.Millisecond
	// FreshFor is the validity of an answer.
	FreshFor = 3 * time.Second
	// grace limits the time that a majority waits for the rest of the list.
	grace = 250 * time.Millisecond
)

var errWaiting = errors.New("not decided yet")

// Run asks the other servers until this server may start its Raft. formed means that it
// must write the plan's first entry.
func (f *Formation) Run(ctx context.Context) (formed bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	f.AskAll(ctx, &wg)
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		formed, err := f.decide(time.Now())
		if !errors.Is(err, errWaiting) {
			return formed, err
		}
		select {
		case <-f.changed:
		case <-tick.C:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// AskAll starts goroutines that ask every other server on the list repeatedly.
func (f *Formation) AskAll(ctx context.Context, wg *sync.WaitGroup) {
	for _, m := range f.env.Members {
		if m.ID == f.env.Self.ID {
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			f.askOne(ctx, m)
		}()
	}
}

func (f *Formation) askOne(ctx context.Context, m membership.Member) {
	for pause := askFirst; ; pause = min(2*pause, AskSlowly) {
		delay, hurried := askEvery, f.hurriedNow()
		if f.phaseNow() == PhaseMember {
			delay = AskSlowly
		}
		if !f.askOnce(ctx, m.ID, m.QuorumAddr) {
			delay = AskSlowly
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
func (f *Formation) hurry() {
	if f.hurried != nil {
		close(f.hurried)
	}
	f.hurried = make(chan struct{})
}

// hurriedNow returns the channel that the next hurry closes.
func (f *Formation) hurriedNow() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hurried == nil {
		f.hurried = make(chan struct{})
	}
	return f.hurried
}

// askOnce asks the server at addr, and the leader that this server names.
func (f *Formation) askOnce(ctx context.Context, server uint64, addr string) bool {
	s, ok := f.query(ctx, addr)
	if !ok {
		return false
	}
	if s.ID == server || s.wrong {
		f.note(server, s)
	}
	if !s.Leading && s.Leader != f.env.Self.ID && s.LeaderAddr != "" {
		// The leader need not be on our list.
		if l, ok := f.query(ctx, s.LeaderAddr); ok && l.ID == s.Leader {
			f.note(l.ID, l)
		}
	}
	return true
}

func (f *Formation) query(ctx context.Context, addr string) (sighting, bool) {
	ctx, cancel := context.WithTimeout(ctx, exchange.Timeout)
	defer cancel()
	p, theirs, err := f.Probe(ctx, addr, "")
	s := sighting{Identity: theirs, at: time.Now()}
	if err != nil {
		var refused *quorum.RefusedError
		s.wrong = errors.As(err, &refused) && refused.Code == quorum.WrongList
		return s, s.wrong
	}
	s.Probe = *p
	return s, true
}

func (f *Formation) note(server uint64, s sighting) {
	f.mu.Lock()
	if s.Refusal != "" && s.Refusal != f.table[server].Refusal {
		f.env.Log.Warn("the ensemble does not admit this server", "leader", server, "reason", s.Refusal)
	}
	f.table[server] = s
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// Describe returns this server's answer to a probe.
func (f *Formation) Describe() *Probe {
	leading, leader, addr := f.env.Leads()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.token == 0 {
		f.token = random()
	}
	p := &Probe{Token: f.token, ID: f.env.Self.ID, Disk: f.store.state.Disk, Addr: f.env.Self.QuorumAddr, Observer: f.env.Self.Observer,
		List: string(membership.New(f.env.Members).Text()), ClientPort: f.env.ClientPort, Level: f.env.Level,
		Phase: f.phase, Bound: f.store.state.Bound, Ballot: f.store.state.Ballot, Promised: f.store.state.Promised, Leading: leading, Leader: leader, LeaderAddr: addr,
		As: f.id, Join: f.asking}
	if p.As == "" {
		p.As = membership.JoinerID(f.env.Self.ID, p.Disk)
	}
	return p
}

// Serve answers the question on a stream of kind quorum.Probe.
func (f *Formation) Serve(conn net.Conn, from quorum.Identity) {
	exchange.Respond(conn, false, func(q *Question) any {
		switch {
		case q.Probe != nil:
			if err := q.Probe.Check(); err != nil {
				return &Answer{Error: err.Error()}
			}
			f.env.Called(q.Probe, from, conn.RemoteAddr())
			return &Answer{Probe: f.answer(q.Probe, from)}
		case q.Admit != nil:
			if err := f.admit(q.Admit); err != nil {
				return &Answer{Error: err.Error()}
			}
			return &Answer{Admitted: true}
		}
		return &Answer{Error: "a question that this server does not understand"}
	})
}

// answer returns the reply to a probe. It promises and accepts first, so that the server
// that asked needn't ask again.
func (f *Formation) answer(p *Probe, from quorum.Identity) *Probe {
	f.hear(p, from)
	mine := f.Describe()
	// A removed member may not know about its removal, so the leader doesn't wait for it
	// to ask.
	if mine.Leading && (p.Join || p.Phase == PhaseMember) {
		mine.Refusal = f.env.Join(p, from)
	}
	mine.Join, mine.Token = false, 0
	if !f.trusts(p, from, mine) {
		mine.redact()
	}
	return mine
}

// trusts reports whether a server that asks may learn more than the existence of the
// ensemble and its leader. A member has proved its membership. A late founder proves by
// its disk id that it participated in the formation. While an ensemble forms, the servers
// on the list can't prove anything, so we trust them all.
func (f *Formation) trusts(p *Probe, from quorum.Identity, mine *Probe) bool {
	own := f.env.Hub.Identity().Cluster
	switch {
	case own != (quorum.ClusterID{}) && from.Cluster == own:
		return true
	case mine.Phase == PhaseMember:
		return p.Disk != 0 && mine.Bound != nil && mine.Bound.Disks[p.ID] == p.Disk
	}
	return slices.ContainsFunc(f.env.Members, func(m membership.Member) bool { return m.ID == p.ID })
}

// redact removes everything that an untrusted caller must not see.
func (p *Probe) redact() {
	*p = Probe{ID: p.ID, Level: p.Level, Phase: p.Phase, As: p.As, Leading: p.Leading, Leader: p.Leader, LeaderAddr: p.LeaderAddr, Refusal: p.Refusal}
}

// admit handles an admission from the leader that this server has asked.
func (f *Formation) admit(a *Admission) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.phase == PhaseMember:
		return errors.New("this server is a member of an ensemble")
	case f.token == 0 || a.Token != f.token || a.Cluster == (quorum.ClusterID{}):
		return errors.New("this server has not requested that")
	case a.ServerID != membership.JoinerID(f.env.Self.ID, f.store.state.Disk):
		return fmt.Errorf("this server is %s", membership.JoinerID(f.env.Self.ID, f.store.state.Disk))
	}
	f.granted = a
	select {
	case f.changed <- struct{}{}:
	default:
	}
	return nil
}

// hear records a probe from a listed server while neither server has Raft state.
func (f *Formation) hear(p *Probe, from quorum.Identity) {
	listed := slices.ContainsFunc(f.env.Members, func(m membership.Member) bool { return m.ID == p.ID && m.ID != f.env.Self.ID })
	if !listed || p.Phase == PhaseMember || f.phaseNow() == PhaseMember {
		return
	}
	f.note(p.ID, sighting{Probe: *p, Identity: from, at: time.Now()})
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.react(time.Now()); err != nil {
		f.env.Log.Warn("a promise could not be written", "err", err)
	}
}

// decide acts on the other servers' reports. It returns errWaiting while they allow no
// decision.
func (f *Formation) decide(now time.Time) (formed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.phase == PhaseMember {
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
func (f *Formation) admitted(a *Admission) error {
	f.env.Log.Info("joining the ensemble", "as", string(a.ServerID), "ensemble", a.Cluster.String())
	f.fixed = true
	return f.env.Settle(a.ServerID, a.Cluster)
}

// carryOut makes this server a member of the ensemble that b plans.
func (f *Formation) carryOut(b *Plan, in Ballot) error {
	if in != f.store.state.Ballot || f.store.state.Bound == nil || f.store.state.Bound.Cluster != b.Cluster {
		next := f.store.state
		next.Ballot, next.Bound = in, b
		if err := f.store.save(next); err != nil {
			return err
		}
	}
	f.fixed = true
	return f.env.Settle(membership.FounderID(f.env.Self.ID), b.Cluster)
}

// memberSeen reports whether this server has heard from a member of an ensemble.
func (f *Formation) memberSeen() bool {
	for _, s := range f.table {
		if s.Phase == PhaseMember && s.Ensemble != (quorum.EnsembleName{}) {
			return true
		}
	}
	return false
}

func (f *Formation) voters() (n int) {
	for _, m := range f.env.Members {
		if !m.Observer {
			n++
		}
	}
	return n
}

func (f *Formation) majority() int { return f.voters()/2 + 1 }

// settled returns the number of founders that are known to have carried out the plan, and
// whether all founders have.
func (f *Formation) settled(b *Plan) (members int, all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all = true
	for server := range b.Disks {
		s := f.table[server]
		switch {
		case server == f.env.Self.ID, s.Phase == PhaseMember && s.Ensemble == b.Cluster.Name():
			members++
		default:
			all = false
		}
	}
	return members, all
}

// AwaitAll waits until all servers that carry out a plan run Raft or, after the grace
// period, a majority. It returns false if there is a leader first, or if ctx ends.
func (f *Formation) AwaitAll(ctx context.Context, b *Plan, led func() bool) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	f.AskAll(ctx, &wg)
	enough := time.Now().Add(grace)
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		members, all := f.settled(b)
		if all || members >= f.majority() && time.Now().After(enough) {
			return true
		}
		if led() {
			return false
		}
		select {
		case <-f.changed:
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// SetMember records that this server has Raft state under the given id.
func (f *Formation) SetMember(id raft.ServerID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.phase, f.id = PhaseMember, id
}

// SetAsking sets whether this server asks to be added to Raft's configuration.
func (f *Formation) SetAsking(asking bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asking = asking
}

func (f *Formation) phaseNow() Phase {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.phase
}

// State returns the current state. A probe from another server may change it at any time.
func (f *Formation) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.store.state
}

// MarkTaken records durably that Raft state exists. If the state is missing later, the server
// has lost it and is no longer a member.
func (f *Formation) MarkTaken() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.store.state.Taken {
		return nil
	}
	s := f.store.state
	s.Taken = true
	return f.store.save(s)
}
