package raftfsm

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// The leader carries out plans (plan.go), one step after the other, and plans anew
// before each.

const (
	// hearLimit is how long a leader waits for the servers that were live a moment
	// ago, before it changes who votes.
	hearLimit = time.Second
	// givenUpAfter is how long a reconfig under way may have no plan any more, since
	// servers went down, before it is given up and undone.
	givenUpAfter = 5 * time.Second
	// maxSetback bounds the pause after a change that Raft has refused.
	maxSetback = 10 * time.Second
)

// farewells says since when the membership is what it is.
type farewells struct {
	at    time.Time
	index uint64
}

// step is the next thing to do.
type step struct {
	want    *membership
	change  func() error // nil: nothing can be done now
	what    string
	waiting bool // something will have to be done later
	refused bool // no order of changes keeps a live majority
	leave   bool // it hands over the lead
}

// setback is a change that failed.
type setback struct {
	what, reason string
	pause        time.Duration
	until        time.Time
}

// failed notes an error, and logs it unless it is known.
func (b *setback) failed(log *slog.Logger, what string, err error) {
	if b.what != what || b.reason != err.Error() {
		log.Warn("Raft's configuration could not be changed", "change", what, "err", err)
		b.pause = 0
	}
	b.what, b.reason = what, err.Error()
	b.pause = min(max(2*b.pause, reconcileEvery), maxSetback)
	b.until = time.Now().Add(b.pause)
}

// rests reports whether a change has failed so recently that it has to wait.
func (b *setback) rests(what string) bool { return b.what == what && time.Now().Before(b.until) }

// changeRaft changes Raft's configuration as far as possible now. Reconcile loop.
func (e *ensemble) changeRaft(l *leading, since farewells, failed *setback) {
	for l.ctx.Err() == nil && e.ctx.Err() == nil {
		s := e.step(l, since)
		if s.change != nil && failed.rests(s.what) {
			s.waiting, s.change = true, nil
		}
		e.reconfigs.report(s)
		if s.change == nil {
			return
		}
		if err := s.change(); err != nil {
			if l.ctx.Err() == nil {
				failed.failed(e.log, s.what, err)
			}
			return
		}
		e.log.Info("Raft's configuration changed", "change", s.what)
		if s.leave {
			return // until Raft has told that another server leads
		}
	}
}

// step finds the next difference between Raft's configuration and the membership
// that is wanted.
func (e *ensemble) step(l *leading, since farewells) step {
	s := step{want: e.wanted()}
	if s.want == nil {
		return s
	}
	servers := e.n.raftNow().GetConfiguration().Configuration().Servers
	for _, server := range servers {
		if e.stepAddress(&s, l, server); s.change != nil {
			return s
		}
	}
	if e.stepVotes(&s, l, since); s.change != nil || s.waiting || s.refused {
		return s
	}
	for _, server := range servers {
		if e.stepRemove(&s, server, since); s.change != nil {
			return s
		}
	}
	return s
}

// stepVotes takes the first step of a plan.
func (e *ensemble) stepVotes(s *step, l *leading, since farewells) {
	p := e.planFor(s.want, e.thought(l))
	steps, ok := e.allowed(p, since)
	for _, x := range steps {
		s.waiting = s.waiting || x.kind == giveVote && !e.mayVote(x.id)
	}
	// Nothing changes who votes before the servers that join have caught up: if they
	// never do, there is nothing to undo.
	if len(steps) > 0 && steps[0].kind != addServer && steps[0].kind != dropServer {
		if s.waiting {
			return
		}
		p = e.planFor(s.want, e.hear(l))
		steps, ok = e.allowed(p, since)
	}
	under := e.reconfigs.current() == s.want
	if s.refused = !ok && under; s.refused || len(steps) == 0 {
		return
	}
	first := steps[0]
	if first.kind == addServer && !e.joins.of(serverOf(first.id)).confirmed {
		s.waiting = true // until it was reached at the address that the membership has for it
		return
	}
	if first.kind == giveVote && !e.mayVote(first.id) || !majority(first.after(p.servers), p.live) {
		s.waiting = true
		return
	}
	e.prepare(s, p, first)
}

// allowed is the plan, less the steps that could undo what an earlier leader was
// doing for a reconfig.
func (e *ensemble) allowed(p *planInput, since farewells) ([]planStep, bool) {
	steps, ok := p.plan()
	if e.undoes(since) {
		steps = slices.DeleteFunc(steps, func(x planStep) bool {
			j := e.joins.of(serverOf(x.id))
			came := j.id == x.id && j.fresh()
			return x.kind == takeVote || x.kind == handOver || x.kind == giveVote && !came
		})
	}
	return steps, ok
}

// prepare makes a step of a plan the next thing to do.
func (e *ensemble) prepare(s *step, p *planInput, x planStep) {
	r, id := e.n.raftNow(), x.id
	switch x.kind {
	case dropServer:
		s.what = fmt.Sprintf("remove server %s: its data directory was replaced by another one", id)
		if e.neverCame(id) {
			s.what = fmt.Sprintf("server %d comes for the first time: free the place that the list has for it", serverOf(id))
		}
		s.change = func() error { return r.RemoveServer(id, 0, changeTimeout).Error() }
	case addServer:
		i := slices.IndexFunc(p.joiners, func(j raft.Server) bool { return j.ID == id })
		addr := p.joiners[i].Address
		s.what = fmt.Sprintf("add server %s at %s", id, addr)
		s.change = func() error { return r.AddNonvoter(id, addr, 0, changeTimeout).Error() }
	case giveVote:
		i := slices.IndexFunc(p.servers, func(x raft.Server) bool { return x.ID == id })
		addr := p.servers[i].Address
		s.what = fmt.Sprintf("give server %s a vote", id)
		s.change = func() error { return r.AddVoter(id, addr, 0, changeTimeout).Error() }
	case takeVote:
		s.what = fmt.Sprintf("take the vote of server %s", id)
		s.change = func() error { return r.DemoteVoter(id, 0, changeTimeout).Error() }
	case handOver:
		s.leave, s.what = true, "hand over the lead"
		s.change = func() error {
			ctx, cancel := context.WithTimeout(e.ctx, changeTimeout)
			defer cancel()
			return e.transferTo(ctx, s.want)
		}
	}
}

// planFor is what a plan to a membership has to know.
func (e *ensemble) planFor(want *membership, live map[raft.ServerID]bool) *planInput {
	p := &planInput{servers: e.n.raftNow().GetConfiguration().Configuration().Servers, target: want,
		leader: e.n.identity.RaftID, live: live}
	for i := range want.members {
		m := &want.members[i]
		j := e.joins.of(m.ID)
		known := slices.ContainsFunc(p.servers, func(x raft.Server) bool { return x.ID == j.id || serverOf(x.ID) == m.ID && live[x.ID] })
		if !known && j.fresh() {
			p.joiners = append(p.joiners, raft.Server{ID: j.id, Address: raft.ServerAddress(e.joinAddr(m, j))})
			live[j.id] = true
		}
	}
	return p
}

// thought returns the servers that count as live until a leader hears otherwise:
// those that it has heard of lately, and all in its first moments.
func (e *ensemble) thought(l *leading) map[raft.ServerID]bool {
	live := make(map[raft.ServerID]bool)
	for _, s := range e.n.raftNow().GetConfiguration().Configuration().Servers {
		live[s.ID] = e.alive(s.ID) || time.Since(l.since) < silentFor
	}
	return live
}

// hear asks all servers whether they follow this leader now, and returns those that
// answer. It waits for those that were live a moment ago, but not for long. So a
// server that has just died does not count when votes are taken and given.
func (e *ensemble) hear(l *leading) map[raft.ServerID]bool {
	asked := e.asked(l)
	thought := e.thought(l)
	e.heartbeatNow()
	ctx, cancel := context.WithTimeout(l.ctx, hearLimit)
	defer cancel()
	for {
		changed := asked.trans.Changed()
		live, all := make(map[raft.ServerID]bool), true
		for id, was := range thought {
			live[id] = id == e.n.identity.RaftID || asked.trans.Heard(asked.term, id, asked.mark)
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

// mayVote reports whether a server has so much of the log that it may vote.
func (e *ensemble) mayVote(id raft.ServerID) bool {
	r := e.n.raftNow()
	acked := e.transportNow().Acked(r.CurrentTerm(), id)
	return acked != 0 && acked+closeBehind >= r.LastIndex()
}

// undoes says whether to take votes and servers away now could undo a reconfig
// that an earlier leader was driving: the server that it came from will ask
// this leader to go on, if it lives.
func (e *ensemble) undoes(since farewells) bool {
	l := e.leadNow()
	if l == nil {
		return true
	}
	return e.reconfigs.current() == nil && time.Since(l.since) < undoAfter && since.at.Before(l.since)
}

// stepRemove removes a server without a vote that is no member. It does so when the
// server had time to learn that it is none, so that its own clients get their
// answers.
func (e *ensemble) stepRemove(s *step, server raft.Server, since farewells) {
	r, id := e.n.raftNow(), server.ID
	mine := e.replicated()
	switch {
	case s.want.member(serverOf(id)) != nil || mine == nil || mine.member(serverOf(id)) != nil:
		return // a member, or one until a reconfig under way is done
	case server.Suffrage == raft.Voter || e.undoes(since):
		return
	case e.transportNow().Acked(r.CurrentTerm(), id) < since.index && time.Since(since.at) < farewell:
		return
	}
	s.what = fmt.Sprintf("remove server %s", id)
	s.change = func() error { return r.RemoveServer(id, 0, changeTimeout).Error() }
}
