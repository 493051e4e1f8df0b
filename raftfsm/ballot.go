package raftfsm

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
)

// How the servers of an ensemble that forms come to one founding: by the
// single-decree Paxos of their listed voters. All of it travels in the probes
// that they exchange anyway: everybody says which ballot it has promised itself
// to, and which founding it has accepted in which ballot.
//
//   - A voter that sees a majority and nobody of an ensemble begins a ballot above
//     all that it has seen, the highest id at once, the others one after another
//     when nothing comes of that (propose).
//   - Who sees a ballot above its own promise promises itself to it: it accepts
//     nothing of a lower one any more (react).
//   - Once a majority of the listed voters has promised itself to a ballot, its
//     proposer takes up the founding that was accepted in the highest ballot
//     that any of them reports, adds the disks that are empty and not named yet,
//     or draws up a new one if there is none, and accepts it (value).
//   - Who sees that a founding was accepted in a ballot not below its promise
//     accepts it too, if its own disk is named (react).
//   - A founding accepted by a majority in one ballot is chosen. Whoever is named
//     in it carries it out (chosen).
//
// Promise and acceptance are on disk before anybody is told of them, and a ballot
// is the property of one disk, which puts one founding at most to it.
//
// Safety: if founding F is chosen in ballot b, every founding accepted in a
// higher ballot is F with further disks named. For its proposer has the promises
// of a majority, which shares a voter v with the majority that accepted F in b. v
// accepted before it promised, or could not have any more; so the highest
// ballot reported is b or above, and holds F or, by induction, F with further
// disks. So there is one ensemble, one first entry for all founders, and of
// every server one disk at most that may call itself its founder. A voter that
// came back without its disk has forgotten what it said: its word does not count
// when a founding that was reported names another disk for it (promises).
//
// A member of an ensemble takes part no more: that there is a founder with Raft
// state proves what was chosen, and those named follow it. So an acceptor that
// promises has never voted in Raft, and a founding to which disks are added had
// not enough voters with Raft state to commit anything.
//
// Liveness: nothing that was accepted binds for good. As long as a majority reaches
// one another for a few seconds, one of them outwaits the others, gets their promises
// for a ballot above everything, and they accept what it proposes, because it
// names all of them. Were accepted foundings spread among the voters in any way,
// two of them, two and one, they unite in that ballot. Two that propose at once
// may get in each other's way; each waits for a random, growing time before it
// tries again.
//
// Before there were ballots, a server bound itself to the first founding that
// named it, and a majority bound to one carried it out. Such a directory has
// accepted in ballot zero, the only one with more than one founding in it. There
// the founding is taken up that a majority can have been bound to; if more than
// one can, more voters have to be heard.

// ballot is one attempt to agree on a founding, and whose it is.
type ballot struct {
	Round  uint64 `json:"round"`
	Server uint64 `json:"server"`
	Disk   uint64 `json:"disk"` // of that server: one that lost its disk is another proposer
}

func (b ballot) compare(o ballot) int {
	return cmp.Or(cmp.Compare(b.Round, o.Round), cmp.Compare(b.Server, o.Server), cmp.Compare(b.Disk, o.Disk))
}

// ballotPause is how long a ballot is given before the next one; each attempt of
// this server's own that came to nothing doubles it, up to maxBallotPause.
const (
	ballotPause    = 500 * time.Millisecond
	maxBallotPause = 8 * time.Second
)

// react promises and accepts what follows from what the others said. f.mu is
// held.
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

// acceptable says whether somebody has accepted a founding that counts on this
// server.
func (f *formation) acceptable(p *probe) bool {
	b := p.Bound
	return b != nil && b.List == listHash(f.members) && b.Disks[f.self.ID] == f.store.seat.Disk
}

// vote makes a promise or an acceptance durable, and gives its proposer time.
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

// pause is how long to wait before another ballot.
func (f *formation) pause() time.Duration {
	d := min(ballotPause<<min(f.attempts, 8), maxBallotPause)
	return d + rand.N(d)
}

// chosen returns the founding that this server has to carry out, with the ballot
// it was chosen in; nil while there is none. f.mu is held.
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
		// A founder that has Raft state knows what was chosen.
		if s.Phase == phaseMember && f.acceptable(&s.probe) && s.Ensemble == s.Bound.Cluster.Name() && s.As == founderID(s.ID) {
			return s.Bound, s.Ballot
		}
	}
	return nil, ballot{}
}

// eachVoter calls do with what is known of each listed voter that was heard,
// this server included.
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

// own is the part of describe that ballots need.
func (f *formation) own() *probe {
	s := &f.store.seat
	return &probe{ID: f.self.ID, Disk: s.Disk, Phase: f.phase, Bound: s.Bound, Ballot: s.Ballot, Promised: s.Promised}
}

// propose begins a ballot when it is up to this server, and puts a founding to
// it once a majority has promised. f.mu is held.
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

// present returns the disks without Raft state of the servers that are there,
// nil when nothing may be founded with them, and how many voters of a higher id
// are among them.
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

// value is the founding to be put to this server's ballot; nil while the promises
// do not suffice.
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
		return nil // another server may propose it
	}
	return &b
}

// promises returns the voters that have promised themselves to this server's
// ballot and remember all that they ever accepted, and the number of the rest.
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

// takeUp returns the founding that may have been chosen before, nil when there is
// none. decided is false when it depends on the voters that were not heard.
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
