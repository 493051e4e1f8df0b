package raftfsm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
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
	calling map[uint64]bool          // servers that are being admitted
	waiting chan *probe              // those to be admitted next
	seen    map[raft.ServerID]string // newest address that a server announced for itself
	from    map[raft.ServerID]string // from where one came that has none to announce
	files   map[uint64]announced     // by server: the list in its configuration file
}

// stranger tells a server that is no member how it becomes one.
func (e *ensemble) stranger(p *probe) string {
	line := fmt.Sprintf("server.%d=%s:electionPort;clientPort", p.ID, p.Addr)
	if list := e.listOf(p.ID); list != nil {
		m := list.member(p.ID)
		at := m.located(e.joinAddr(m, joiner{id: p.As, addr: p.Addr}))
		line = at.reconfigLine(p.ClientPort)
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
	m, err := parseState(text)
	if err != nil {
		e.log.Error("the membership cannot be read", "err", err)
		return nil
	}
	return m
}

// reconcileLoop works while this server leads; while it follows it sees whether
// there is still somebody to follow.
func (e *ensemble) reconcileLoop() {
	var known uint64 // version of the membership at the last look
	var since farewells
	var failed setback
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
			e.refreshRole()
			e.followOwnAddress(m)
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
			e.changeRaft(l, since, &failed)
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
		if j := e.joins.of(serverOf(s.ID)); j.id == s.ID && j.fresh() {
			continue // it asked to join a moment ago, and is not contacted yet
		}
		switch {
		case was && !alive && e.neverCame(s.ID):
			l.silent[s.ID] = true
			e.log.Info("a server of the list has not come yet", "server", serverOf(s.ID), "addr", string(s.Address))
		case was && !alive:
			l.silent[s.ID] = true
			e.log.Warn("a server does not answer", "server", serverOf(s.ID), "addr", string(s.Address))
		case !was && alive:
			delete(l.silent, s.ID)
			e.log.Info("a server answers again", "server", serverOf(s.ID))
		}
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
		lost := outside || e.leaderID() == ""
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
	e.setPace(true)
	mine, now := newMembership(e.n.cfg.Members), e.replicated()
	for i := range mine.members {
		mine.members[i] = mine.members[i].located(e.knownAt(mine.members[i].ID, now))
	}
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
	reachable := func(s raft.Server) bool { return !trans.Failing(term, s.ID) }
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
		if time.Since(trans.Contact(term, s.ID)) < electionTimeout && reachable(s) {
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
		return quorum.CompareIDs(b.ID, a.ID)
	})
	err := errNobody
	for _, s := range able {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		before := trans.Unheard()
		r.LeadershipTransferToServer(s.ID, s.Address)
		leads := func() bool { return r.State() == raft.Leader && r.CurrentTerm() == term }
		// Raft tells one server for as long as an election takes, and no other meanwhile.
		unheard := func() bool { return trans.Unheard() != before || !slices.ContainsFunc(able, reachable) }
		if err = follows(ctx, e.n.cfg.timing().lease, leads, unheard); err == nil {
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

// follows waits until this server does not lead any more, or the other one cannot
// be told. Raft's own answer is not waited for: there is none while its main
// loop waits for the disk, and never one when it is shut down or deposed before it
// has looked at the request.
func follows(ctx context.Context, timeout time.Duration, leads, unheard func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, timeout+timeout/4) // Raft gives up after its election timeout
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
