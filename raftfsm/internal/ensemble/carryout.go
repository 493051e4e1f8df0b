package ensemble

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// The leader carries out plans (membership.Change) one step at a time, and makes a new plan before
// each step.

const (
	// hearLimit limits the time that a leader waits to hear from recently live servers
	// before it changes the voters.
	hearLimit = time.Second
	// givenUpAfter is the time after which the leader abandons and undoes a reconfig that
	// has no plan because servers went down.
	givenUpAfter = 5 * time.Second
	// comesWithin limits the time that a reconfig waits for a server that it adds
	// (NeedsAll).
	comesWithin = 3 * time.Second
	// maxSetback bounds the pause after a change that Raft refused.
	maxSetback = 10 * time.Second
)

// farewells records when, and at which index, the membership last changed.
type farewells struct {
	at    time.Time
	index uint64
}

// step is the next change to make.
type step struct {
	want    *membership.List
	change  func() error // nil: no change can be made now
	what    string
	waiting bool     // a change must be made later
	refused bool     // no order of changes keeps a live majority
	missing []uint64 // servers that have to come before the change counts
	leave   bool     // the change hands over the leadership
}

// setback is the last failed change, and the pause before it is tried again.
type setback struct {
	what, reason string
	pause        time.Duration
	until        time.Time
}

// failed records an error, and logs it unless it repeats the previous one.
func (b *setback) failed(log *slog.Logger, what string, err error) {
	if b.what != what || b.reason != err.Error() {
		log.Warn("Raft's configuration could not be changed", "change", what, "err", err)
		b.pause = 0
	}
	b.what, b.reason = what, err.Error()
	b.pause = min(max(2*b.pause, reconcileEvery), maxSetback)
	b.until = time.Now().Add(b.pause)
}

// rests reports whether a change must wait because it failed recently.
func (b *setback) rests(what string) bool { return b.what == what && time.Now().Before(b.until) }

// changeRaft changes Raft's configuration as far as possible now. It reports whether
// something remains to be done. Only the reconcile loop calls it.
func (c *changes) changeRaft(l *leading, since farewells, failed *setback) (pending bool) {
	for l.ctx.Err() == nil && c.ctx.Err() == nil {
		s := c.step(l, since)
		if s.change != nil && failed.rests(s.what) {
			s.waiting, s.change = true, nil
		}
		c.reconfigs.report(s)
		if s.change == nil {
			return s.waiting || s.refused || len(s.missing) > 0
		}
		if err := s.change(); err != nil {
			if l.ctx.Err() == nil {
				failed.failed(c.log, s.what, err)
			}
			return true
		}
		c.log.Info("Raft's configuration changed", "change", s.what)
		if s.leave {
			return true // wait until Raft reports another leader
		}
	}
	return false
}

// step finds the next difference between Raft's configuration and the wanted
// membership.
func (c *changes) step(l *leading, since farewells) step {
	s := step{want: c.wanted()}
	if s.want == nil {
		return s
	}
	servers := c.env.RaftNow().GetConfiguration().Configuration().Servers
	for _, server := range servers {
		if c.stepAddress(&s, l, server); s.change != nil {
			return s
		}
	}
	if c.stepVotes(&s, l, since); s.change != nil || s.waiting || s.refused {
		return s
	}
	for _, server := range servers {
		if c.stepRemove(&s, server, since); s.change != nil {
			return s
		}
	}
	return s
}

// stepVotes selects the first step of a plan.
func (c *changes) stepVotes(s *step, l *leading, since farewells) {
	p := c.planFor(s.want, c.thought(l))
	steps, ok := c.allowed(p, since)
	for _, x := range steps {
		s.waiting = s.waiting || x.Kind == membership.GiveVote && !c.mayVote(x.ID)
	}
	under := c.reconfigs.current() == s.want
	if under {
		s.missing = c.missing(p)
	}
	// The voters don't change before the joining servers have caught up: if they never
	// do, there is nothing to undo.
	if len(steps) > 0 && steps[0].Kind != membership.AddServer && steps[0].Kind != membership.DropServer {
		if s.waiting = s.waiting || len(s.missing) > 0; s.waiting {
			return
		}
		p = c.planFor(s.want, c.hear(l))
		steps, ok = c.allowed(p, since)
		if under {
			if s.missing = c.missing(p); len(s.missing) > 0 {
				return
			}
		}
	}
	if s.refused = !ok && under; s.refused || len(steps) == 0 {
		return
	}
	first := steps[0]
	if first.Kind == membership.AddServer && !c.places.joins.of(membership.ServerOf(first.ID)).confirmed {
		s.waiting = true // until the leader has reached it, see joiner.absent
		return
	}
	if first.Kind == membership.GiveVote && !c.mayVote(first.ID) || !membership.Majority(first.After(p.Servers), p.Live) {
		s.waiting = true
		return
	}
	c.prepare(s, p, first)
}

// allowed returns the plan without the steps that could undo the changes that an earlier
// leader made for a reconfig.
func (c *changes) allowed(p *membership.Change, since farewells) ([]membership.Step, bool) {
	steps, ok := p.Plan()
	if c.undoes(since) {
		steps = slices.DeleteFunc(steps, func(x membership.Step) bool {
			j := c.places.joins.of(membership.ServerOf(x.ID))
			came := j.id == x.ID && j.fresh()
			return x.Kind == membership.TakeVote || x.Kind == membership.HandOver || x.Kind == membership.GiveVote && !came
		})
	}
	return steps, ok
}

// prepare fills in s for a step of a plan.
func (c *changes) prepare(s *step, p *membership.Change, x membership.Step) {
	r, id := c.env.RaftNow(), x.ID
	switch x.Kind {
	case membership.DropServer:
		s.what = fmt.Sprintf("remove server %s: its data directory was replaced by another one", id)
		if c.formation.State().Bound.NeverCame(id) {
			s.what = fmt.Sprintf("server %d joins for the first time: remove the placeholder that the list has for it", membership.ServerOf(id))
		}
		s.change = func() error { return r.RemoveServer(id, 0, ChangeTimeout).Error() }
	case membership.AddServer:
		i := slices.IndexFunc(p.Joiners, func(j raft.Server) bool { return j.ID == id })
		addr := p.Joiners[i].Address
		s.what = fmt.Sprintf("add server %s at %s", id, addr)
		s.change = func() error { return r.AddNonvoter(id, addr, 0, ChangeTimeout).Error() }
	case membership.GiveVote:
		i := slices.IndexFunc(p.Servers, func(x raft.Server) bool { return x.ID == id })
		addr := p.Servers[i].Address
		s.what = fmt.Sprintf("give server %s a vote", id)
		s.change = func() error { return r.AddVoter(id, addr, 0, ChangeTimeout).Error() }
	case membership.TakeVote:
		s.what = fmt.Sprintf("remove the vote of server %s", id)
		s.change = func() error { return r.DemoteVoter(id, 0, ChangeTimeout).Error() }
	case membership.HandOver:
		s.leave, s.what = true, "transfer the leadership"
		s.change = func() error {
			ctx, cancel := context.WithTimeout(c.ctx, ChangeTimeout)
			defer cancel()
			return c.transferTo(ctx, s.want)
		}
	}
}

// planFor returns the input for a plan to reach a membership.
func (c *changes) planFor(want *membership.List, live map[raft.ServerID]bool) *membership.Change {
	p := &membership.Change{Servers: c.env.RaftNow().GetConfiguration().Configuration().Servers, Target: want,
		Leader: c.env.Identity.RaftID, Live: live}
	for i := range want.Members {
		m := &want.Members[i]
		j := c.places.joins.of(m.ID)
		known := slices.ContainsFunc(p.Servers, func(x raft.Server) bool { return x.ID == j.id || membership.ServerOf(x.ID) == m.ID && live[x.ID] })
		if !known && j.fresh() && !j.absent(m) {
			p.Joiners = append(p.Joiners, raft.Server{ID: j.id, Address: raft.ServerAddress(c.places.joinAddr(m, j))})
			live[j.id] = true
		}
	}
	return p
}

// missing returns the servers that a reconfig must not add yet with NeedsAll: new members,
// or new voters, that are not connected. A joining server calls the leader, which accepts
// only the certificate for the name in the reconfig. Then the leader calls the server,
// sends it the log, and gives it a vote once it has caught up. Otherwise the reconfig
// fails, so every listed voter can vote. Without NeedsAll, the server is listed like one
// that is down, as in ZooKeeper, and gets its vote when it comes.
func (c *changes) missing(p *membership.Change) (ids []uint64) {
	if !c.env.Config.NeedsAll {
		return nil
	}
	now := c.replicated()
	for _, m := range p.Target.Members {
		if now.Lists(m.ID) && (m.Observer || !now.Member(m.ID).Observer) {
			continue
		}
		is := func(s raft.Server) bool { return membership.ServerOf(s.ID) == m.ID && p.Live[s.ID] }
		if !slices.ContainsFunc(p.Servers, is) && !slices.ContainsFunc(p.Joiners, is) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// thought returns the servers that the leader presumes live: those it has heard from
// recently or, just after it became leader, all servers.
func (c *changes) thought(l *leading) map[raft.ServerID]bool {
	live := make(map[raft.ServerID]bool)
	for _, s := range c.env.RaftNow().GetConfiguration().Configuration().Servers {
		live[s.ID] = c.alive(s.ID) || time.Since(l.since) < silentFor
	}
	return live
}

// hear asks all servers whether they still follow this leader, and returns the servers
// that answer. It waits up to hearLimit for the servers presumed live. So a server that
// has just died doesn't count when we give votes to servers and remove votes.
func (c *changes) hear(l *leading) map[raft.ServerID]bool {
	asked := c.asked(l)
	thought := c.thought(l)
	c.heartbeatNow()
	ctx, cancel := context.WithTimeout(l.ctx, hearLimit)
	defer cancel()
	for {
		changed := asked.trans.Changed()
		live, all := make(map[raft.ServerID]bool), true
		for id, was := range thought {
			live[id] = id == c.env.Identity.RaftID || asked.trans.Heard(asked.term, id, asked.mark)
			all = all && (live[id] || !was)
		}
		if all {
			return live
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return live
		}
	}
}

// mayVote reports whether a server has enough of the log to get a vote.
func (c *changes) mayVote(id raft.ServerID) bool {
	r := c.env.RaftNow()
	acked := c.transportNow().Acked(r.CurrentTerm(), id)
	return acked != 0 && acked+closeBehind >= r.LastIndex()
}

// undoes reports whether removing votes and servers now could undo a reconfig that an
// earlier leader was driving. If the server that received that reconfig is still live,
// it will ask this leader to continue.
func (c *changes) undoes(since farewells) bool {
	l := c.leadNow()
	if l == nil {
		return true
	}
	return c.reconfigs.current() == nil && time.Since(l.since) < undoAfter && since.at.Before(l.since)
}

// stepRemove removes a server that is neither a voter nor a member. It first gives the
// server time to learn about its removal, so that the server's own clients get their
// replies.
func (c *changes) stepRemove(s *step, server raft.Server, since farewells) {
	r, id := c.env.RaftNow(), server.ID
	mine := c.replicated()
	switch {
	case s.want.Member(membership.ServerOf(id)) != nil || mine == nil || mine.Member(membership.ServerOf(id)) != nil:
		return // a member, or still one until the current reconfig is done
	case server.Suffrage == raft.Voter || c.undoes(since):
		return
	case c.env.Config.NeedsAll && c.reconfigs.lingers(membership.ServerOf(id)):
		return
	case c.transportNow().Acked(r.CurrentTerm(), id) < since.index && time.Since(since.at) < farewell:
		return
	}
	s.what = fmt.Sprintf("remove server %s", id)
	s.change = func() error { return r.RemoveServer(id, 0, ChangeTimeout).Error() }
}
