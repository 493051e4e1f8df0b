package bootstrap

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// How the servers of a forming ensemble agree on one plan: the listed voters run
// single-decree Paxos. The messages are part of the probes that the servers exchange
// anyway. Each server reports the ballot that it has promised, the plan that it has
// accepted, and the ballot of that plan.
//
//   - A voter that sees a majority, and no member of an ensemble, starts a ballot above
//     all ballots that it has seen. The highest id starts at once; the others follow
//     one after another if no plan is chosen (propose).
//   - A server that sees a ballot above its own promise promises that ballot: it no
//     longer accepts a plan in a lower ballot (react).
//   - Once a majority of the listed voters has promised a ballot, its proposer selects
//     the plan accepted in the highest ballot that any of these voters reports, or
//     creates a new plan if there is none. It adds the empty disks that the plan doesn't
//     name yet, and accepts the result (value).
//   - A server that sees a plan accepted in a ballot not below its promise accepts it
//     too, if the plan names its disk (react).
//   - A plan that a majority has accepted in one ballot is chosen. The servers named
//     in it carry it out (chosen).
//
// A server writes its promise and its acceptance to disk before it reports them. A
// ballot belongs to one disk, which proposes at most one plan in it.
//
// Safety: if plan P is chosen in ballot b, every plan accepted in a higher ballot is P,
// possibly with more disks. The proposer of the higher ballot has the promises of a
// majority, and that majority shares a voter v with the majority that accepted P in b.
// v accepted P before it promised the higher ballot, because it couldn't accept P
// afterwards. So the highest ballot reported is b or above, and its plan is P or, by
// induction, P with more disks. Hence there is one ensemble, one first entry for all
// founders, and at most one disk per server that may call itself its founder. A voter
// that lost its disk has forgotten its promises. Its promise doesn't count if a
// reported plan names another disk for that server (promises).
//
// A member of an ensemble no longer participates: a founder with Raft state proves
// which plan was chosen, and the servers named in it follow. So an acceptor that
// promises has never voted in Raft, and a plan to which disks are added didn't have
// enough voters with Raft state to commit an entry.
//
// Liveness: no acceptance is final. If a majority of the voters can reach one another for
// a few seconds, one voter waits longest, and the others promise its ballot, which is
// above all earlier ballots. They accept its plan because it names all their disks. This
// works however the accepted plans are spread among the voters, e.g. two different ones,
// or two and one. Two voters that propose at the same time may interfere with each other;
// each waits for a random, growing time before it tries again.
//
// Releases without ballots bound a server to the first plan that named it, and
// carried out a plan once a majority was bound to it. Such a directory counts as
// having accepted in ballot zero, the only ballot with more than one plan. From
// ballot zero, a proposer selects the plan that a majority can have been bound to.
// If there is more than one, it must hear from more voters.

// Ballot identifies one attempt to agree on a plan, and its proposer.
type Ballot struct {
	Round  uint64 `json:"round"`
	Server uint64 `json:"server"`
	Disk   uint64 `json:"disk"` // of that server: after losing its disk it's another proposer
}

func (b Ballot) compare(o Ballot) int {
	return cmp.Or(cmp.Compare(b.Round, o.Round), cmp.Compare(b.Server, o.Server), cmp.Compare(b.Disk, o.Disk))
}

// ballotPause limits the duration of a ballot before the next one starts. Each failed
// attempt of this server doubles it, up to maxBallotPause.
const (
	ballotPause    = 500 * time.Millisecond
	maxBallotPause = 8 * time.Second
)

// react promises and accepts according to the other servers' reports. The caller holds
// f.mu.
func (f *Formation) react(now time.Time) error {
	if f.fixed {
		return nil
	}
	next := f.store.state
	for _, s := range f.table {
		if s.Promised.compare(next.Promised) > 0 {
			next.Promised = s.Promised
		}
	}
	for _, s := range f.table {
		if f.acceptable(&s.Probe) && s.Ballot.compare(next.Promised) >= 0 && s.Ballot.compare(next.Ballot) > 0 {
			next.Ballot, next.Bound, next.Promised = s.Ballot, s.Bound, s.Ballot
		}
	}
	if next.Promised == f.store.state.Promised && next.Ballot == f.store.state.Ballot {
		return nil
	}
	return f.vote(next, now)
}

// acceptable reports whether p carries an accepted plan that has this server's list
// and names its disk.
func (f *Formation) acceptable(p *Probe) bool {
	b := p.Bound
	return b != nil && b.List == ListHash(f.env.Members) && b.Disks[f.env.Self.ID] == f.store.state.Disk
}

// vote makes a promise or an acceptance durable, and postpones this server's own next
// ballot.
func (f *Formation) vote(next State, now time.Time) error {
	if next.Bound != nil && (f.store.state.Bound == nil || next.Bound.Cluster != f.store.state.Bound.Cluster) {
		f.env.Log.Info("participating in the formation of the ensemble", "ensemble", next.Bound.Cluster.String())
	}
	if err := f.store.save(next); err != nil {
		return err
	}
	if next.Bound != nil {
		f.phase = PhaseBound
	}
	f.patience = now.Add(pauseAfter(f.attempts))
	f.hurry()
	return nil
}

// pauseAfter returns how long to wait before the next ballot.
func pauseAfter(attempts int) time.Duration {
	d := min(ballotPause<<min(attempts, 8), maxBallotPause)
	return d + rand.N(d)
}

// chosen returns the plan that this server must carry out and the ballot in which
// it was chosen, or nil if there is none yet. The caller holds f.mu.
func (f *Formation) chosen() (*Plan, Ballot) {
	own := &f.store.state
	if own.Bound != nil {
		n := 0
		f.eachVoter(func(p *Probe) {
			if p.Bound != nil && p.Ballot == own.Ballot && p.Bound.Cluster == own.Bound.Cluster {
				n++
			}
		})
		if n >= f.majority() {
			return own.Bound, own.Ballot
		}
	}
	for _, s := range f.table {
		// A founder with Raft state knows which plan was chosen.
		if s.Phase == PhaseMember && f.acceptable(&s.Probe) && s.Ensemble == s.Bound.Cluster.Name() && s.As == membership.FounderID(s.ID) {
			return s.Bound, s.Ballot
		}
	}
	return nil, Ballot{}
}

// eachVoter calls do with the newest probe of each listed voter that this server has
// heard from, including its own.
func (f *Formation) eachVoter(do func(*Probe)) {
	for _, m := range f.env.Members {
		s, seen := f.table[m.ID]
		switch {
		case m.Observer:
		case m.ID == f.env.Self.ID:
			do(f.own())
		case seen:
			do(&s.Probe)
		}
	}
}

// own returns the part of describe that ballots need.
func (f *Formation) own() *Probe {
	s := &f.store.state
	return &Probe{ID: f.env.Self.ID, Disk: s.Disk, Phase: f.phase, Bound: s.Bound, Ballot: s.Ballot, Promised: s.Promised}
}

// propose starts a ballot when it is this server's turn, and proposes a plan in it
// once a majority has promised. The caller holds f.mu.
func (f *Formation) propose(now time.Time) error {
	empty, rank := f.present(now)
	if empty == nil {
		f.since = time.Time{}
		return nil
	}
	if f.since.IsZero() {
		f.since = now
	}
	waited := now.Sub(f.since)
	if len(empty) < len(f.env.Members) && waited < grace {
		return nil
	}
	next := f.store.state
	if mine := f.store.state.Promised; f.owns(mine) && mine != f.store.state.Ballot {
		if b := f.value(empty); b != nil {
			next.Ballot, next.Bound = mine, b
			return f.vote(next, now)
		}
	}
	if now.Before(f.patience) || waited < time.Duration(rank)*ballotPause {
		return nil
	}
	f.attempts++
	next.Promised = Ballot{Round: next.Promised.Round + 1, Server: f.env.Self.ID, Disk: next.Disk}
	return f.vote(next, now)
}

func (f *Formation) owns(b Ballot) bool {
	return b.Server == f.env.Self.ID && b.Disk == f.store.state.Disk && b.Round > 0
}

// present returns the disks of the reachable servers, all without Raft state, and the
// number of voters with a higher id among these servers. It returns nil if no ensemble
// may form now.
func (f *Formation) present(now time.Time) (empty map[uint64]uint64, rank int) {
	empty = map[uint64]uint64{f.env.Self.ID: f.store.state.Disk}
	voters := 0
	for _, m := range f.env.Members {
		s, seen := f.table[m.ID]
		fresh := seen && now.Sub(s.at) < FreshFor
		switch {
		case m.ID == f.env.Self.ID:
		case fresh && (s.wrong || s.Phase == PhaseMember):
			return nil, 0
		case fresh:
			empty[m.ID] = s.Disk
		default:
			continue
		}
		if !m.Observer {
			voters++
			if m.ID > f.env.Self.ID {
				rank++
			}
		}
	}
	needed := f.majority()
	if f.env.NeedsAll {
		needed = f.voters()
	}
	if voters < needed || f.env.Self.Observer {
		return nil, 0
	}
	return empty, rank
}

// value returns the plan to propose in this server's ballot, or nil while the
// promises don't suffice.
func (f *Formation) value(empty map[uint64]uint64) *Plan {
	heard, unheard := f.promises()
	if len(heard) < f.majority() {
		return nil
	}
	taken, decided := takeUp(heard, unheard, f.majority())
	if !decided {
		return nil
	}
	if taken == nil {
		taken = &Plan{List: ListHash(f.env.Members), Servers: f.servers()}
		for i := range taken.Cluster {
			taken.Cluster[i] = byte(random())
		}
	}
	b := *taken
	b.Disks = maps.Clone(taken.Disks)
	if b.Disks == nil {
		b.Disks = make(map[uint64]uint64)
	}
	for server, disk := range empty {
		if b.Disks[server] == 0 {
			b.Disks[server] = disk
		}
	}
	if b.Disks[f.env.Self.ID] != f.store.state.Disk {
		return nil // another server can propose it
	}
	return &b
}

// servers returns the servers on the list. A server with a wildcard gets its address
// from the lists of the others. The caller holds f.mu.
func (f *Formation) servers() []Server {
	all := serversOf(f.env.Members)
	for i := range all {
		if membership.Dialable(all[i].Addr) {
			continue
		}
		var found []string
		for of, s := range f.table {
			list, err := membership.Parse([]byte(s.Probe.List))
			if err != nil || of == all[i].ID {
				continue
			}
			if m := list.Member(all[i].ID); m != nil && membership.Dialable(m.QuorumAddr) {
				found = append(found, m.QuorumAddr)
			}
		}
		slices.Sort(found)
		all[i].Addr = membership.FirstDialable(all[i].ID, found...)
	}
	return all
}

// promises returns the voters that have promised this server's ballot and remember
// everything that they ever accepted, and the number of other voters.
func (f *Formation) promises() (heard []*Probe, unheard int) {
	f.eachVoter(func(p *Probe) {
		if p.Promised == f.store.state.Promised && p.Phase != PhaseMember {
			heard = append(heard, p)
		}
	})
	all := slices.Clone(heard)
	heard = slices.DeleteFunc(heard, func(p *Probe) bool {
		return slices.ContainsFunc(all, func(o *Probe) bool {
			return o.Bound != nil && o.Bound.Disks[p.ID] != 0 && o.Bound.Disks[p.ID] != p.Disk
		})
	})
	return heard, f.voters() - len(heard)
}

// takeUp returns the plan that may have been chosen in an earlier ballot, or nil if
// there is none. decided is false if the result depends on the voters not heard.
func takeUp(heard []*Probe, unheard, majority int) (taken *Plan, decided bool) {
	var highest Ballot
	bound := make(map[quorum.ClusterID]int)
	for _, p := range heard {
		if p.Bound == nil {
			continue
		}
		bound[p.Bound.Cluster]++
		if taken == nil || p.Ballot.compare(highest) > 0 {
			highest, taken = p.Ballot, p.Bound
		}
	}
	if highest != (Ballot{}) {
		return taken, true
	}
	taken = nil
	for _, p := range heard {
		switch {
		case p.Bound == nil || bound[p.Bound.Cluster]+unheard < majority:
		case taken != nil && taken.Cluster != p.Bound.Cluster:
			return nil, false
		default:
			taken = p.Bound
		}
	}
	return taken, true
}
