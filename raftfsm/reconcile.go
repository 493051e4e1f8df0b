package raftfsm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/peer"
	"github.com/zkgo/zkgo/tree"
)

// Whoever leads drives Raft's configuration, one server at a time, to where the
// membership is: the text of /zookeeper/config, or while a reconfig is under way
// the one that it asks for. So a change that was interrupted anywhere is either
// finished or undone, by whichever leader comes next, without a trace in the log
// of how far it had come.

const (
	// reconcileEvery is how often a leader compares without being told to.
	reconcileEvery = 200 * time.Millisecond
	// changeTimeout bounds one change of Raft's configuration.
	changeTimeout = 10 * time.Second
	// silentFor is how long nothing must have come from a server before another
	// disk may take its place.
	silentFor = 2 * time.Second
	// farewell is how long a server that was removed may take to learn of it.
	farewell = 2 * time.Second
	// undoAfter is how long a new leader leaves a reconfig alone that another
	// one may have been driving.
	undoAfter = 5 * time.Second
	// closeBehind is how many entries a server may lack to be given a vote.
	closeBehind = 128
)

// joins remembers who asked to be let in, and who was seen where.
type joins struct {
	mu      sync.Mutex
	joiners map[uint64]joiner        // by server
	seen    map[raft.ServerID]string // newest address that a server announced for itself
	files   map[uint64]announced     // by server: the list in its configuration file
}

// joiner is a server on a disk that Raft's configuration does not have.
type joiner struct {
	id   raft.ServerID
	addr string
	at   time.Time // when it last asked
}

func (j joiner) fresh() bool { return time.Since(j.at) < freshFor }

func (j *joins) of(server uint64) joiner {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.joiners[server]
}

// noteAddress remembers where another server says that it is.
func (e *ensemble) noteAddress(p *probe, from peer.Identity) {
	host, _, err := net.SplitHostPort(p.Addr)
	if err != nil || host == "" || host == "0.0.0.0" || host == "::" || string(p.As) != from.ServerID {
		return
	}
	if from.Cluster != e.hub.Identity().Cluster || from.Cluster == (peer.ClusterID{}) {
		return
	}
	e.joins.noteList(p)
	e.joins.mu.Lock()
	defer e.joins.mu.Unlock()
	if e.joins.seen == nil {
		e.joins.seen = make(map[raft.ServerID]string)
	}
	e.joins.seen[p.As] = p.Addr
}

// addresses returns where a server may be, beside the address in Raft's
// configuration: where it says it is, and where our configuration file has it.
func (e *ensemble) addresses(id raft.ServerID) []string {
	var out []string
	e.joins.mu.Lock()
	if a := e.joins.seen[id]; a != "" {
		out = append(out, a)
	}
	e.joins.mu.Unlock()
	for _, m := range e.n.cfg.Members {
		if m.ID == serverOf(id) && !slices.Contains(out, m.QuorumAddr) {
			out = append(out, m.QuorumAddr)
		}
	}
	return out
}

// join answers a server that wants to be let in, on the leader. It is told to
// start its Raft when it belongs to the membership; the leader then adds it.
func (e *ensemble) join(p *probe, from peer.Identity) (*admission, string) {
	cluster := e.hub.Identity().Cluster
	if p.Phase == phaseMember && (from.Cluster != cluster || from.ServerID != string(p.As)) {
		return nil, "it belongs to another ensemble"
	}
	if serverOf(p.As) != p.ID {
		return nil, fmt.Sprintf("it calls itself %d and %s", p.ID, p.As)
	}
	if now, _ := e.n.Level(); p.Level < now {
		return nil, fmt.Sprintf("the ensemble is at behaviour level %d, which all its servers know, and server %d knows only %d: upgrade it", now, p.ID, p.Level)
	}
	e.joins.noteList(p)
	for _, s := range e.n.raftNow().GetConfiguration().Configuration().Servers {
		switch {
		case s.ID == p.As:
			return &admission{Cluster: cluster, ServerID: p.As}, ""
		case serverOf(s.ID) == p.ID && e.alive(s.ID):
			return nil, fmt.Sprintf("server %d is running already, on another data directory", p.ID)
		}
	}
	e.joins.mu.Lock()
	if e.joins.joiners == nil {
		e.joins.joiners = make(map[uint64]joiner)
	}
	e.joins.joiners[p.ID] = joiner{id: p.As, addr: p.Addr, at: time.Now()}
	e.joins.mu.Unlock()
	want := e.wanted()
	if want == nil || want.member(p.ID) == nil {
		return nil, e.stranger(p)
	}
	e.reconfigs.poke()
	return &admission{Cluster: cluster, ServerID: p.As}, ""
}

// stranger tells a server that is no member how it becomes one.
func (e *ensemble) stranger(p *probe) string {
	line := fmt.Sprintf("server.%d=%s:electionPort;clientPort", p.ID, p.Addr)
	if list := e.listOf(p.ID); list != nil {
		line = list.member(p.ID).reconfigLine(p.ClientPort)
	}
	how := "run: reconfig -add " + line
	if e.n.cfg.Policy&tree.ReconfigEnabled == 0 {
		how = "restart its servers, one after another, with a list that has it; or allow reconfig with reconfigEnabled=true and " + how
	}
	return fmt.Sprintf("server %d is not a member of the ensemble: %s", p.ID, how)
}

// alive says whether a server has answered this leader just now.
func (e *ensemble) alive(id raft.ServerID) bool {
	if id == e.n.identity.RaftID {
		return true
	}
	return time.Since(e.transportNow().Contact(e.n.raftNow().CurrentTerm(), id)) < silentFor
}

// wanted is the membership to be had: that of a reconfig under way, or the
// replicated one. It is nil before the first leaderStart.
func (e *ensemble) wanted() *membership {
	if t := e.reconfigs.current(); t != nil {
		return t
	}
	return e.replicated()
}

// replicated is the membership as of the newest entry applied.
func (e *ensemble) replicated() *membership {
	e.n.tree.RLock()
	text := e.n.machine.config
	e.n.tree.RUnlock()
	if text == nil {
		return nil
	}
	m, err := parseMembership(text)
	if err != nil {
		e.log.Error("the membership cannot be read", "err", err)
		return nil
	}
	m.raw = text
	return m
}

// reconcileLoop works while this server leads; while it follows it sees whether
// there is still somebody to follow.
func (e *ensemble) reconcileLoop() {
	var known uint64 // version of the membership at the last look
	var since farewells
	tick := time.NewTicker(reconcileEvery)
	defer tick.Stop()
	for {
		e.leaveOff()
		if m := e.replicated(); m != nil {
			if m.version != known {
				known = m.version
				since = farewells{at: time.Now(), index: e.appliedIndex.Load()}
			}
			e.reconfigs.reached(m)
			if e.n.Status().Serving {
				e.compareFile(m)
			}
		}
		if l := e.leadNow(); l != nil {
			e.census(l)
			e.raise(l)
			if m := e.replicated(); m != nil {
				e.followFiles(l, m)
			}
			for l.ctx.Err() == nil && e.ctx.Err() == nil {
				s := e.step(since)
				e.reconfigs.report(s)
				if s.change == nil {
					break
				}
				if err := s.change(); err != nil {
					e.log.Warn("Raft's configuration could not be changed", "change", s.what, "err", err)
					break
				}
				e.log.Info("Raft's configuration changed", "change", s.what)
				if s.leave {
					break // until Raft has told that somebody else leads
				}
			}
		}
		select {
		case <-tick.C:
		case <-e.reconfigs.poked():
		case <-e.ctx.Done():
			return
		}
	}
}

// census tells the operator which servers come and go.
func (e *ensemble) census(l *leading) {
	if time.Since(l.since) < silentFor {
		return
	}
	for _, s := range e.n.raftNow().GetConfiguration().Configuration().Servers {
		alive, was := e.alive(s.ID), !l.silent[s.ID]
		switch {
		case was && !alive:
			l.silent[s.ID] = true
			e.log.Warn("a server does not answer", "server", serverOf(s.ID), "addr", string(s.Address))
		case !was && alive:
			delete(l.silent, s.ID)
			e.log.Info("a server answers again", "server", serverOf(s.ID))
		}
	}
}

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
	leave   bool // this server has to hand over the lead first
}

// step finds the next difference between Raft's configuration and the
// membership that is wanted. Servers come before they go, so that there are
// never fewer votes than there have to be.
func (e *ensemble) step(since farewells) step {
	s := step{want: e.wanted()}
	if s.want == nil {
		return s
	}
	servers := e.n.raftNow().GetConfiguration().Configuration().Servers
	for _, look := range []func(*step, raft.Server, farewells){e.stepIn, e.stepReplaced, e.stepAddress} {
		for _, server := range servers {
			if look(&s, server, since); s.change != nil {
				return s
			}
		}
	}
	if e.stepJoin(&s, servers); s.change != nil || s.waiting {
		return s
	}
	if e.undoes(since) {
		return s
	}
	for _, server := range servers {
		if e.stepOut(&s, server, since); s.change != nil {
			return s
		}
	}
	if s.leave { // there is nothing else to do
		s.what = "hand over the lead"
		s.change = func() error {
			ctx, cancel := context.WithTimeout(e.ctx, changeTimeout)
			defer cancel()
			return e.transferTo(ctx, s.want)
		}
	}
	return s
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

// stepIn gives a vote to a server that is to have one and has caught up.
func (e *ensemble) stepIn(s *step, server raft.Server, since farewells) {
	r, trans, id := e.n.raftNow(), e.transportNow(), server.ID
	m, j := s.want.member(serverOf(id)), e.joins.of(serverOf(id))
	if m == nil || m.Observer || server.Suffrage == raft.Voter {
		return
	}
	came := j.id == id && j.fresh()
	if !e.alive(id) && !came {
		return // it is not here: it gets its vote when it comes
	}
	if !came && e.undoes(since) {
		return
	}
	s.waiting = true
	if acked := trans.Acked(r.CurrentTerm(), id); acked != 0 && acked+closeBehind >= r.LastIndex() {
		s.what = fmt.Sprintf("give server %s a vote", id)
		s.change = func() error { return r.AddVoter(id, server.Address, 0, changeTimeout).Error() }
	}
}

// stepReplaced removes a server in whose place one with another disk stands.
func (e *ensemble) stepReplaced(s *step, server raft.Server, _ farewells) {
	r, id := e.n.raftNow(), server.ID
	j := e.joins.of(serverOf(id))
	if s.want.member(serverOf(id)) != nil && j.fresh() && j.id != id && !e.alive(id) {
		s.what = fmt.Sprintf("remove server %s: its disk is gone, %s takes its place", id, j.id)
		s.change = func() error { return r.RemoveServer(id, 0, changeTimeout).Error() }
	}
}

// stepJoin adds a member that is here and that Raft does not know.
func (e *ensemble) stepJoin(s *step, servers []raft.Server) {
	r := e.n.raftNow()
	for i := range s.want.members {
		m := &s.want.members[i]
		known := slices.ContainsFunc(servers, func(x raft.Server) bool { return serverOf(x.ID) == m.ID })
		if j := e.joins.of(m.ID); !known && j.fresh() {
			s.waiting = true
			s.what = fmt.Sprintf("add server %s at %s", j.id, m.QuorumAddr)
			s.change = func() error {
				return r.AddNonvoter(j.id, raft.ServerAddress(m.QuorumAddr), 0, changeTimeout).Error()
			}
			return
		}
	}
}

// stepOut takes away the vote of a server that is to have none, and removes one
// that is no member.
func (e *ensemble) stepOut(s *step, server raft.Server, since farewells) {
	r, id := e.n.raftNow(), server.ID
	m := s.want.member(serverOf(id))
	switch {
	case server.Suffrage == raft.Voter && (m == nil || m.Observer):
		if id == e.n.identity.RaftID {
			s.leave = true
			return
		}
		s.what = fmt.Sprintf("take the vote of server %s", id)
		s.change = func() error { return r.DemoteVoter(id, 0, changeTimeout).Error() }
	case m == nil:
		// It is removed when it had time to learn that it is, so that its own
		// clients get their answers.
		mine := e.replicated()
		if mine == nil || mine.member(serverOf(id)) != nil {
			return // while a reconfig is under way
		}
		if e.transportNow().Acked(r.CurrentTerm(), id) < since.index && time.Since(since.at) < farewell {
			return
		}
		s.what = fmt.Sprintf("remove server %s", id)
		s.change = func() error { return r.RemoveServer(id, 0, changeTimeout).Error() }
	}
}

// stepAddress follows a server that moved, after it has proved that it is at
// the new address.
func (e *ensemble) stepAddress(s *step, server raft.Server, _ farewells) {
	r := e.n.raftNow()
	addr := e.self.QuorumAddr
	if server.ID != e.n.identity.RaftID {
		e.joins.mu.Lock()
		addr = e.joins.seen[server.ID]
		e.joins.mu.Unlock()
	}
	if addr == "" || addr == string(server.Address) {
		return
	}
	if server.ID != e.n.identity.RaftID {
		ctx, cancel := context.WithTimeout(e.ctx, probeTimeout)
		defer cancel()
		a, theirs, err := ask(ctx, e.hub, addr, string(server.ID), &question{Probe: e.formation.describe()})
		if err != nil || theirs.ServerID != string(server.ID) || a.Probe == nil {
			return
		}
		e.joins.noteList(a.Probe)
	}
	s.what = fmt.Sprintf("move server %s from %s to %s", server.ID, server.Address, addr)
	s.change = func() error {
		if server.Suffrage == raft.Voter {
			return r.AddVoter(server.ID, raft.ServerAddress(addr), 0, changeTimeout).Error()
		}
		return r.AddNonvoter(server.ID, raft.ServerAddress(addr), 0, changeTimeout).Error()
	}
}

// lookoutLoop asks around while this server has no leader or is not in Raft's
// configuration: a leader may have to learn where it is, or to let it in.
func (e *ensemble) lookoutLoop() {
	var wg sync.WaitGroup
	defer wg.Wait()
	stop := func() {}
	defer func() { stop() }()
	asking := false
	tick := time.NewTicker(askSlowly)
	defer tick.Stop()
	for {
		outside := e.outside()
		e.formation.ask(outside)
		if !outside {
			if err := e.formation.taken(); err != nil {
				e.n.mail.post([]event{{kind: evFailed, err: err}})
				return
			}
		}
		_, leader := e.n.raftNow().LeaderWithID()
		lost := outside || leader == ""
		switch {
		case lost && !asking:
			ctx, cancel := context.WithCancel(e.ctx)
			asking, stop = true, cancel
			e.formation.askAll(ctx, &wg)
		case !lost && asking:
			asking = false
			stop()
		}
		select {
		case <-tick.C:
		case <-e.ctx.Done():
			return
		}
	}
}

// outside says whether Raft's configuration lacks this server.
func (e *ensemble) outside() bool { return !e.inRaft(e.n.identity.RaftID) }

// inRaft says whether Raft's configuration has a server, with a vote or without.
func (e *ensemble) inRaft(id raft.ServerID) bool {
	return slices.ContainsFunc(e.n.raftNow().GetConfiguration().Configuration().Servers,
		func(s raft.Server) bool { return s.ID == id })
}

// configured implements others.
func (e *ensemble) configured(uint64, raft.Configuration) { e.reconfigs.poke() }

// leading implements others: the first leader brings the list of its
// configuration file along, and so does every later one as long as it names the
// same servers and no reconfig has changed them, as in ZooKeeper.
func (e *ensemble) leading(s *leaderStart) {
	mine, now := newMembership(e.n.cfg.Members), e.replicated()
	if now == nil || now.version == 0 && now.equal(mine) {
		s.flags |= flagConfig
		s.config = mine.text()
	}
}

var errNobody = errors.New("no other server can take the lead")

// transfer implements others.
func (e *ensemble) transfer(ctx context.Context) error { return e.transferTo(ctx, nil) }

// transferTo hands the lead to the best voter, one of the members when they
// are given.
func (e *ensemble) transferTo(ctx context.Context, among *membership) error {
	r, trans := e.n.raftNow(), e.transportNow()
	if r == nil || r.State() != raft.Leader {
		return nil
	}
	term := r.CurrentTerm()
	var able []raft.Server
	others := 0
	for _, s := range r.GetConfiguration().Configuration().Servers {
		if s.ID == e.n.identity.RaftID || s.Suffrage != raft.Voter {
			continue
		}
		if m := among; m != nil && (m.member(serverOf(s.ID)) == nil || m.member(serverOf(s.ID)).Observer) {
			continue
		}
		others++
		if time.Since(trans.Contact(term, s.ID)) < electionTimeout {
			able = append(able, s)
		}
	}
	if others == 0 && among == nil {
		return nil // alone
	}
	slices.SortStableFunc(able, func(a, b raft.Server) int {
		x, y := trans.Acked(term, a.ID), trans.Acked(term, b.ID)
		if x != y {
			return int(min(max(int64(y-x), -1), 1))
		}
		return peer.CompareIDs(b.ID, a.ID)
	})
	err := errNobody
	for _, s := range able {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		before := trans.Unheard()
		r.LeadershipTransferToServer(s.ID, s.Address)
		leads := func() bool { return r.State() == raft.Leader && r.CurrentTerm() == term }
		if err = follows(ctx, leads, func() bool { return trans.Unheard() != before }); err == nil {
			return nil
		}
		err = fmt.Errorf("server %s %w", s.ID, err)
	}
	return err
}

// The reasons of servers that do not follow this one as leaders.
var (
	errUnheard = errors.New("cannot be told to take the lead")
	errUnled   = errors.New("does not take the lead")
)

// follows waits until this server does not lead any more, or the other one could
// not be told. Raft's own answer is not waited for: there is none while its main
// loop waits for the disk, and never one when it is shut down or deposed before it
// has looked at the request.
func follows(ctx context.Context, leads, unheard func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, electionTimeout+electionTimeout/4) // Raft gives up after one
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for leads() {
		if unheard() {
			return errUnheard
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errUnled
		}
	}
	return nil
}
