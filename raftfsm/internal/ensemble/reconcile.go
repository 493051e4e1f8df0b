package ensemble

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum/transport"
	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/tree"
)

// The leader drives Raft's configuration, one server at a time, towards the membership:
// the text of /zookeeper/config, or the membership that a pending reconfig asks for. So
// the next leader, whichever it is, finishes or undoes a change that was interrupted
// anywhere, and the log needs no record of the progress.

const (
	// reconcileEvery is the interval at which a leader compares the two, while they
	// differ or for eager after a change. checkEvery is the interval of any server
	// otherwise, because each comparison wakes an idle process.
	reconcileEvery = 200 * time.Millisecond
	checkEvery     = time.Second
	eager          = 10 * time.Second
	// ChangeTimeout bounds one change of Raft's configuration.
	ChangeTimeout = 10 * time.Second
	// silentFor is the silence of a server after which another disk may replace it.
	silentFor = 2 * time.Second
	// farewell limits the time for a removed server to learn about its removal.
	farewell = 2 * time.Second
	// undoAfter is the time for which a new leader doesn't touch a reconfig that another
	// leader may have been driving.
	undoAfter = 5 * time.Second
	// closeBehind is the maximum number of entries that a server may lack when it gets a
	// vote.
	closeBehind = 128
)

// joins records the servers that asked to join and the addresses at which servers were
// seen.
type joins struct {
	mu      sync.Mutex
	joiners map[uint64]joiner        // by server
	calling map[uint64]bool          // servers being admitted
	waiting chan *bootstrap.Probe    // servers to be admitted next
	seen    map[raft.ServerID]string // newest address that a server announced for itself
	from    map[uint64][]caller      // by server: remote addresses of servers that have no address to announce, oldest first
	files   map[uint64]announced     // by server: the list in its configuration file
}

// changes drives the membership and Raft's configuration on the leader.
type changes struct {
	*base
	places    *places
	files     *files
	reconfigs reconfigs
}

// joining admits the servers that ask this leader to join.
type joining struct {
	*base
	places  *places
	files   *files
	changes *changes
}

// stranger tells a server that is not a member how to become one.
func (j *joining) stranger(p *bootstrap.Probe) string {
	line := fmt.Sprintf("server.%d=%s:electionPort;clientPort", p.ID, p.Addr)
	if m := p.Line(); m != nil {
		at := m.Located(j.places.joinAddr(m, joiner{id: p.As, addr: p.Addr}))
		line = at.ReconfigLine(p.ClientPort)
	}
	how := "run: reconfig -add " + line
	if j.env.Config.Policy&tree.ReconfigEnabled == 0 {
		how = "restart its servers, one after another, with a list that has it; or allow reconfig with reconfigEnabled=true and " + how
	}
	return fmt.Sprintf("server %d is not a member of the ensemble: %s", p.ID, how)
}

// wanted returns the membership to reach: a pending reconfig's, or the replicated one. It
// is nil before the first LeaderStart.
func (c *changes) wanted() *membership.List {
	if t := c.reconfigs.current(); t != nil {
		return t
	}
	return c.replicated()
}

// reconcileLoop works while this server leads. While it follows, the loop checks
// whether there is still a leader to follow.
func (e *Ensemble) reconcileLoop() {
	var known uint64 // version of the membership in the last round
	var since farewells
	var failed setback
	timer := time.NewTimer(checkEvery)
	defer timer.Stop()
	for {
		pause := checkEvery
		e.leaveOff()
		if m := e.replicated(); m != nil {
			if m.Version != known {
				known = m.Version
				since = farewells{at: time.Now(), index: e.appliedIndex.Load()}
			}
			e.reconfigs.reached(m)
			e.refreshRole()
			e.followOwnAddress(m)
			if e.env.Status().Serving {
				e.compareFile(m)
			}
		}
		if l := e.leadNow(); l != nil {
			e.census(l)
			e.raise(l)
			if m := e.replicated(); m != nil {
				e.followFiles(l, m)
			}
			if pending := e.changeRaft(l, since, &failed); pending || min(time.Since(l.since), time.Since(since.at)) < eager {
				pause = reconcileEvery
			}
		}
		timer.Reset(e.rhythm.Next(pause))
		select {
		case <-timer.C:
		case <-e.reconfigs.poked():
		case <-e.ctx.Done():
			return
		}
	}
}

// census logs for the operator which servers stop answering and which return.
func (c *changes) census(l *leading) {
	if time.Since(l.since) < silentFor {
		return
	}
	for _, s := range c.env.RaftNow().GetConfiguration().Configuration().Servers {
		alive, was := c.alive(s.ID), !l.silent[s.ID]
		if j := c.places.joins.of(membership.ServerOf(s.ID)); j.id == s.ID && j.fresh() {
			continue // it asked to join a moment ago and has not been contacted yet
		}
		switch {
		case was && !alive && c.formation.State().Bound.NeverCame(s.ID):
			l.silent[s.ID] = true
			c.log.Info("a server of the list has not joined yet", "server", membership.ServerOf(s.ID), "addr", string(s.Address))
		case was && !alive:
			l.silent[s.ID] = true
			c.log.Warn("a server does not answer", "server", membership.ServerOf(s.ID), "addr", string(s.Address))
		case !was && alive:
			delete(l.silent, s.ID)
			c.log.Info("a server answers again", "server", membership.ServerOf(s.ID))
		}
	}
}

// lookoutLoop asks the other servers while this server has no leader or is not in
// Raft's configuration: a leader may have to learn its address, or to admit it.
func (e *Ensemble) lookoutLoop() {
	var wg sync.WaitGroup
	defer wg.Wait()
	stop := func() {}
	defer func() { stop() }()
	asking := false
	timer := time.NewTimer(bootstrap.AskSlowly)
	defer timer.Stop()
	for {
		pause := checkEvery
		outside := e.outside()
		e.formation.SetAsking(outside)
		if !outside {
			if err := e.formation.MarkTaken(); err != nil {
				e.env.Fail(err)
				return
			}
		}
		lost := outside || e.leaderID() == ""
		if lost {
			pause = bootstrap.AskSlowly
		}
		switch {
		case lost && !asking:
			ctx, cancel := context.WithCancel(e.ctx)
			asking, stop = true, cancel
			e.formation.AskAll(ctx, &wg)
		case !lost && asking:
			asking = false
			stop()
		}
		timer.Reset(e.rhythm.Next(pause))
		select {
		case <-timer.C:
		case <-e.ctx.Done():
			return
		}
	}
}

// Configured is called on Raft's state machine goroutine when a configuration becomes
// effective.
func (c *changes) Configured() { c.reconfigs.poke() }

// Begin completes the first entry of a new leadership: flags and config text. It runs on
// the control goroutine. As in ZooKeeper, the first leader contributes the list of its
// configuration file. Later leaders do so, too, as long as their list names the same
// servers and no reconfig has changed them. A server knows its own client address best, so
// a leader doesn't change the client address of another server: moved does, when that
// server reports it.
func (e *Ensemble) Begin(s *command.LeaderStart) {
	e.setPace(true)
	mine, now := membership.New(e.env.Config.Members), e.replicated()
	for i, m := range mine.Members {
		m = m.Located(e.knownAt(m.ID, now))
		if now != nil && now.Member(m.ID) != nil && m.ID != e.self.ID {
			m = m.WithClient(now.Member(m.ID).ClientAddr)
		}
		mine.Members[i] = m
	}
	if now == nil || now.Version == 0 && now.Equal(mine) {
		s.Flags |= command.FlagConfig
		s.Config = mine.Text()
	}
}

var errNoSuccessor = errors.New("no other server can become the leader")

// Transfer hands leadership to another server.
func (c *changes) Transfer(ctx context.Context) error { return c.transferTo(ctx, nil) }

// transferTo hands leadership to the best voter. If among is given, the voter must be a
// participant in it.
func (c *changes) transferTo(ctx context.Context, among *membership.List) error {
	r, trans := c.env.RaftNow(), c.transportNow()
	if r == nil || r.State() != raft.Leader {
		return nil
	}
	term := r.CurrentTerm()
	reachable := func(s raft.Server) bool { return !trans.Failing(term, s.ID) }
	var able []raft.Server
	others := 0
	for _, s := range r.GetConfiguration().Configuration().Servers {
		if s.ID == c.env.Identity.RaftID || s.Suffrage != raft.Voter {
			continue
		}
		if m := among; m != nil && (m.Member(membership.ServerOf(s.ID)) == nil || m.Member(membership.ServerOf(s.ID)).Observer) {
			continue
		}
		others++
		if time.Since(trans.Contact(term, s.ID)) < ElectionTimeout && reachable(s) {
			able = append(able, s)
		}
	}
	if others == 0 && among == nil {
		return nil // standalone
	}
	slices.SortStableFunc(able, func(a, b raft.Server) int {
		x, y := trans.Acked(term, a.ID), trans.Acked(term, b.ID)
		if x != y {
			return int(min(max(int64(y-x), -1), 1))
		}
		return transport.CompareIDs(b.ID, a.ID)
	})
	err := errNoSuccessor
	if len(able) > 0 {
		c.heartbeatNow() // a server that can't be reached any more is noticed immediately
	}
	for _, s := range able {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		before := trans.Unheard()
		r.LeadershipTransferToServer(s.ID, s.Address)
		leads := func() bool { return r.State() == raft.Leader && r.CurrentTerm() == term }
		// Raft notifies only one server during an election timeout.
		unheard := func() bool { return trans.Unheard() != before || !slices.ContainsFunc(able, reachable) }
		if err = follows(ctx, c.env.Config.Timing().Lease, leads, unheard); err == nil {
			return nil
		}
		err = fmt.Errorf("server %s %w", s.ID, err)
	}
	return err
}

// The reasons why another server hasn't become the leader.
var (
	errUnheard = errors.New("cannot be asked to become the leader")
	errUnled   = errors.New("did not become the leader")
)

// follows waits until this server no longer leads, or the other server can't be asked.
// It doesn't wait for Raft's own answer: there is none while Raft's main loop waits for
// the disk, and there never is one if Raft is shut down or deposed before it looks at
// the request.
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
