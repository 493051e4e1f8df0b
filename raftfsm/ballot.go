package raftfsm

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// How the servers of a forming ensemble agree on one founding: the listed voters run
// single-decree Paxos. The messages are part of the probes that the servers exchange
// anyway. Each server reports the ballot that it has promised, the founding that it has
// accepted, and the ballot of that founding.
//
//   - A voter that sees a majority, and no member of an ensemble, starts a ballot above
//     all ballots that it has seen. The highest id starts at once; the others follow
//     one after another if no founding is chosen (propose).
//   - A server that sees a ballot above its own promise promises that ballot: it no
//     longer accepts a founding in a lower one (react).
//   - Once a majority of the listed voters has promised a ballot, its proposer takes the
//     founding accepted in the highest ballot that any of them reports, or creates a new
//     founding if there is none. It adds the empty disks that the founding doesn't name
//     yet, and accepts the result (value).
//   - A server that sees a founding accepted in a ballot not below its promise accepts it
//     too, if the founding names its disk (react).
//   - A founding that a majority has accepted in one ballot is chosen. The servers named
//     in it carry it out (chosen).
//
// A server writes its promise and its acceptance to disk before it reports them. A
// ballot belongs to one disk, which proposes at most one founding in it.
//
// Safety: if founding F is chosen in ballot b, every founding accepted in a higher
// ballot is F, possibly with more disks. The proposer of the higher ballot has the
// promises of a majority, and that majority shares a voter v with the majority that
// accepted F in b. v accepted F before it promised the higher ballot, because it
// couldn't accept F afterwards. So the highest ballot reported is b or above, and holds
// F or, by induction, F with more disks. Hence there is one ensemble, one first entry
// for all founders, and at most one disk per server that may call itself its founder. A
// voter that lost its disk has forgotten its promises. Its promise doesn't count if a
// reported founding names another disk for that server (promises).
//
// A member of an ensemble no longer takes part: a founder with Raft state proves which
// founding was chosen, and the servers named in it follow. So an acceptor that promises
// has never voted in Raft, and a founding to which disks are added didn't have enough
// voters with Raft state to commit an entry.
//
// Liveness: no acceptance is final. If a majority of the voters can reach one another
// for a few seconds, one of them waits longest, and the others promise its ballot,
// which is above all earlier ones. They accept its founding because it names all of
// them. This works however the accepted foundings are spread among the voters, e.g. two
// different ones, or two and one. Two voters that propose at once may interfere with
// each other; each waits for a random, growing time before it tries again.
//
// Releases without ballots bound a server to the first founding that named it, and
// carried out a founding once a majority was bound to it. Such a directory counts as
// having accepted in ballot zero, the only ballot with more than one founding. From
// ballot zero, a proposer takes the founding that a majority can have been bound to. If
// there is more than one, it has to hear from more voters.

// ballot identifies one attempt to agree on a founding, and its proposer.
type ballot struct {
	Round  uint64 `json:"round"`
	Server uint64 `json:"server"`
	Disk   uint64 `json:"disk"` // of that server: after losing its disk it's another proposer
}

func (b ballot) compare(o ballot) int {
	return cmp.Or(cmp.Compare(b.Round, o.Round), cmp.Compare(b.Server, o.Server), cmp.Compare(b.Disk, o.Disk))
}

// ballotPause is how long a ballot may take before the next one starts. Each failed
// attempt of this server doubles it, up to maxBallotPause.
const (
	ballotPause    = 500 * time.Millisecond
	maxBallotPause = 8 * time.Second
)

// react promises and accepts according to the other servers' reports. The caller holds
// f.mu.
func (f *formation) react(now time.Time) error {
	if f.fixed {
		return nil
	}
	next := f.store.seat
	for _, s := range f.table {
		if s.Promised.compare(next.Promised) > 0 {
			next.Promised = s.Promised
		}
	}
	for _, s := range f.table {
		if f.acceptable(&s.probe) && s.Ballot.compare(next.Promised) >= 0 && s.Ballot.compare(next.Ballot) > 0 {
			next.Ballot, next.Bound, next.Promised = s.Ballot, s.Bound, s.Ballot
		}
	}
	if next.Promised == f.store.seat.Promised && next.Ballot == f.store.seat.Ballot {
		return nil
	}
	return f.vote(next, now)
}

// acceptable reports whether p carries an accepted founding that has this server's list
// and names its disk.
func (f *formation) acceptable(p *probe) bool {
	b := p.Bound
	return b != nil && b.List == listHash(f.members) && b.Disks[f.self.ID] == f.store.seat.Disk
}

// vote makes a promise or an acceptance durable, and postpones this server's own next
// ballot.
func (f *formation) vote(next seat, now time.Time) error {
	if next.Bound != nil && (f.store.seat.Bound == nil || next.Bound.Cluster != f.store.seat.Bound.Cluster) {
		f.log.Info("taking part in the founding of the ensemble", "ensemble", next.Bound.Cluster.String())
	}
	if err := f.store.save(next); err != nil {
		return err
	}
	if next.Bound != nil {
		f.phase = phaseBound
	}
	f.patience = now.Add(f.pause())
	f.hurry()
	return nil
}

// pause returns how long to wait before the next ballot.
func (f *formation) pause() time.Duration {
	d := min(ballotPause<<min(f.attempts, 8), maxBallotPause)
	return d + rand.N(d)
}

// chosen returns the founding that this server has to carry out and the ballot in which
// it was chosen, or nil if there is none yet. The caller holds f.mu.
func (f *formation) chosen() (*founding, ballot) {
	own := &f.store.seat
	if own.Bound != nil {
		n := 0
		f.eachVoter(func(p *probe) {
			if p.Bound != nil && p.Ballot == own.Ballot && p.Bound.Cluster == own.Bound.Cluster {
				n++
			}
		})
		if n >= f.majority() {
			return own.Bound, own.Ballot
		}
	}
	for _, s := range f.table {
		// A founder with Raft state knows which founding was chosen.
		if s.Phase == phaseMember && f.acceptable(&s.probe) && s.Ensemble == s.Bound.Cluster.Name() && s.As == membership.FounderID(s.ID) {
			return s.Bound, s.Ballot
		}
	}
	return nil, ballot{}
}

// eachVoter calls do with the newest probe of each listed voter that this server has
// heard from, including its own.
func (f *formation) eachVoter(do func(*probe)) {
	for _, m := range f.members {
		s, seen := f.table[m.ID]
		switch {
		case m.Observer:
		case m.ID == f.self.ID:
			do(f.own())
		case seen:
			do(&s.probe)
		}
	}
}

// own returns the part of describe that ballots need.
func (f *formation) own() *probe {
	s := &f.store.seat
	return &probe{ID: f.self.ID, Disk: s.Disk, Phase: f.phase, Bound: s.Bound, Ballot: s.Ballot, Promised: s.Promised}
}

// propose starts a ballot when it is this server's turn, and proposes a founding in it
// once a majority has promised. The caller holds f.mu.
func (f *formation) propose(now time.Time) error {
	empty, rank := f.present(now)
	if empty == nil {
		f.since = time.Time{}
		return nil
	}
	if f.since.IsZero() {
		f.since = now
	}
	waited := now.Sub(f.since)
	if len(empty) < len(f.members) && waited < grace {
		return nil
	}
	next := f.store.seat
	if mine := f.store.seat.Promised; f.owns(mine) && mine != f.store.seat.Ballot {
		if b := f.value(empty); b != nil {
			next.Ballot, next.Bound = mine, b
			return f.vote(next, now)
		}
	}
	if now.Before(f.patience) || waited < time.Duration(rank)*ballotPause {
		return nil
	}
	f.attempts++
	next.Promised = ballot{Round: next.Promised.Round + 1, Server: f.self.ID, Disk: next.Disk}
	return f.vote(next, now)
}

func (f *formation) owns(b ballot) bool {
	return b.Server == f.self.ID && b.Disk == f.store.seat.Disk && b.Round > 0
}

// present returns the disks of the reachable servers, all without Raft state, and the
// number of voters with a higher id among these servers. It returns nil if no ensemble
// may form now.
func (f *formation) present(now time.Time) (empty map[uint64]uint64, rank int) {
	empty = map[uint64]uint64{f.self.ID: f.store.seat.Disk}
	voters := 0
	for _, m := range f.members {
		s, seen := f.table[m.ID]
		fresh := seen && now.Sub(s.at) < freshFor
		switch {
		case m.ID == f.self.ID:
		case fresh && (s.wrong || s.Phase == phaseMember):
			return nil, 0
		case fresh:
			empty[m.ID] = s.Disk
		default:
			continue
		}
		if !m.Observer {
			voters++
			if m.ID > f.self.ID {
				rank++
			}
		}
	}
	if voters < f.majority() || f.self.Observer {
		return nil, 0
	}
	return empty, rank
}

// value returns the founding to propose in this server's ballot, or nil while the
// promises don't suffice.
func (f *formation) value(empty map[uint64]uint64) *founding {
	heard, unheard := f.promises()
	if len(heard) < f.majority() {
		return nil
	}
	taken, decided := takeUp(heard, unheard, f.majority())
	if !decided {
		return nil
	}
	if taken == nil {
		taken = &founding{List: listHash(f.members), Servers: f.founders()}
		for i := range taken.Cluster {
			taken.Cluster[i] = byte(randomUint64())
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
	if b.Disks[f.self.ID] != f.store.seat.Disk {
		return nil // another server can propose it
	}
	return &b
}

// promises returns the voters that have promised this server's ballot and remember
// everything that they ever accepted, and the number of other voters.
func (f *formation) promises() (heard []*probe, unheard int) {
	voters := 0
	for _, m := range f.members {
		if !m.Observer {
			voters++
		}
	}
	f.eachVoter(func(p *probe) {
		if p.Promised == f.store.seat.Promised && p.Phase != phaseMember {
			heard = append(heard, p)
		}
	})
	all := slices.Clone(heard)
	heard = slices.DeleteFunc(heard, func(p *probe) bool {
		return slices.ContainsFunc(all, func(o *probe) bool {
			return o.Bound != nil && o.Bound.Disks[p.ID] != 0 && o.Bound.Disks[p.ID] != p.Disk
		})
	})
	return heard, voters - len(heard)
}

// takeUp returns the founding that may have been chosen in an earlier ballot, or nil if
// there is none. decided is false if the result depends on the voters not heard.
func takeUp(heard []*probe, unheard, majority int) (taken *founding, decided bool) {
	var highest ballot
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
	if highest != (ballot{}) {
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
