package raftfsm

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

// timing is the patience that the operator has set: how long a server waits before it gives up
// a leader, and a leader before it gives up the lead. All of it follows from
// syncLimit × tickTime, here and nowhere else.
//
// Raft has one timer for this, of the follower. It cannot tell a leader that is
// gone from one that gets no time on its processor, nor from a follower that was
// asleep itself. So it is set to never, and the loop below judges instead:
//
//   - A leader whose port refuses connections is gone. That is noticed at once,
//     and not here (quorum.Transport.Suspect).
//   - A leader that is silent and whose machine does not accept a connection
//     either is cut off, or its machine is down: it is given up after
//     timing.dead. The kernel accepts connections however busy the machine is.
//   - A leader that is silent on a machine that accepts connections may only be
//     slow: it is given up after timing.slow, which has no upper bound.
//
// Silence counts only while this server was awake: a tick of the loop that comes
// late counts for two ticks at most.
//
// A leader that was given up is hidden from everything in this package that asks
// who leads, and the servers agree on the next one as they do after a crash: by a
// canvass (peer/canvass.go), which needs a majority that has given it up.
type timing struct {
	// lease is how long a leader leads without hearing from a quorum. Its
	// heartbeats come every tenth to fifth of that, or with each report.
	lease time.Duration
	// ask is the silence after which a server tries whether the leader's machine
	// accepts connections; dead and slow see above.
	ask, dead, slow time.Duration
	// tick is how often a server looks.
	tick time.Duration
}

const (
	// resumeWithin bounds the time without writes after a silent loss of the leader.
	resumeWithin = 5 * time.Second
	// leastPatience is the shortest syncLimit × tickTime that is respected: below
	// it a garbage collection would pass for a dead server.
	leastPatience = time.Second
	// idle is a timeout of Raft that never ends.
	idle = 100_000 * time.Hour
)

// patience derives the times from the configuration.
func (c Config) timing() timing {
	limit := max(time.Duration(c.SyncLimit)*c.TickTime, leastPatience)
	bound := min(limit, resumeWithin)
	return timing{
		lease: bound / 2,
		ask:   bound / 5,
		dead:  bound * 2 / 5,
		slow:  limit * 2 / 5,
		tick:  bound / 25,
	}
}

// Patience returns how long a silent leader is waited for: dead is for one whose
// machine accepts no connections, slow for one whose process alone is silent.
func Patience(tickTime time.Duration, syncLimit int) (dead, slow time.Duration) {
	t := Config{TickTime: tickTime, SyncLimit: syncLimit}.timing()
	return t.dead, t.slow
}

// leadOf is one server's lead in one term of Raft.
type leadOf struct {
	server raft.ServerID
	term   uint64
}

// silence measures how long the leader has been silent.
type silence struct {
	lead    leadOf
	contact time.Time // the newest word from it
	looked  time.Time
	lasted  time.Duration // awake
}

// look is called once a tick with the server that Raft takes for the leader and the newest
// word from it.
func (s *silence) look(lead leadOf, contact, now time.Time, tick time.Duration) time.Duration {
	if lead != s.lead || contact.After(s.contact) {
		s.lasted = 0
	} else {
		s.lasted += min(now.Sub(s.looked), 2*tick)
	}
	s.lead, s.contact, s.looked = lead, contact, now
	return s.lasted
}

// reachability is whether a silent leader's machine accepts connections.
type reachability struct {
	busy    atomic.Bool
	calling atomic.Bool // a roll call is under way
	last    time.Time   // when an attempt was begun
	opened  atomic.Bool // one has succeeded since the leader fell silent
	failed  atomic.Bool // one has failed since
}

// vigil watches over the lead until this server is closed.
func (e *ensemble) vigil() {
	p := e.n.cfg.timing()
	tick := time.NewTicker(p.tick)
	defer tick.Stop()
	var quiet silence
	var reach reachability
	var lost time.Time // since when no leader is known
	for {
		select {
		case <-tick.C:
		case <-e.ctx.Done():
			return
		}
		r := e.n.raftNow()
		_, leader := r.LeaderWithID()
		if r.State() == raft.Leader {
			lost = time.Time{}
			continue
		}
		if leader != "" {
			lasted := quiet.look(leadOf{leader, r.CurrentTerm()}, r.LastContact(), time.Now(), p.tick)
			e.judge(&quiet, &reach, lasted, p)
		}
		if e.leaderID() != "" {
			lost = time.Time{}
			continue
		}
		if lost.IsZero() {
			lost = time.Now()
		}
		e.seekLeader(r, time.Since(lost), p)
	}
}

// judge gives the leader up or takes that back.
func (e *ensemble) judge(quiet *silence, reach *reachability, lasted time.Duration, p timing) {
	if lasted < p.ask {
		reach.opened.Store(false)
		reach.failed.Store(false)
		if e.gone.Swap(nil) != nil {
			e.log.Info("the leader is heard again", "leader", string(quiet.lead.server))
		}
		return
	}
	if e.gone.Load() != nil {
		return
	}
	if lasted >= p.slow || lasted >= p.dead && reach.failed.Load() && !reach.opened.Load() {
		lead := quiet.lead
		e.gone.Store(&lead)
		e.log.Warn("the leader is silent, looking for another one", "leader", string(lead.server), "silent", lasted.Round(time.Millisecond),
			"accepts connections", reach.opened.Load())
		e.n.do(func() {
			if e.leaderID() == "" {
				e.publishLooking("the leader is silent")
			}
		})
		return
	}
	e.reach(quiet.lead.server, reach, p)
	if !reach.calling.Swap(true) {
		e.wg.Go(func() {
			defer reach.calling.Store(false)
			e.transportNow().RollCall(e.ctx)
			pauseFor(e.ctx, electing/4)
		})
	}
}

// electing is how recently a quorum must have answered for an election to be
// expected soon.
const electing = 2 * time.Second

// electing implements others.
func (e *ensemble) electing() bool {
	trans := e.transportNow()
	return trans != nil && e.leadNow() == nil && trans.QuorumRuns(electing)
}

// reach tries whether the machine of a server accepts a connection, several times
// while the silence lasts. What is refused is known elsewhere to be gone.
func (e *ensemble) reach(id raft.ServerID, reach *reachability, p timing) {
	limit := (p.dead - p.ask) / 2
	if reach.busy.Load() || time.Since(reach.last) < limit/2 {
		return
	}
	_, addr := e.locate(serverOf(id))
	if addr == "" {
		return
	}
	reach.last = time.Now()
	reach.busy.Store(true)
	e.wg.Go(func() {
		defer reach.busy.Store(false)
		ctx, cancel := context.WithTimeout(e.ctx, limit)
		defer cancel()
		began := time.Now()
		conn, err := e.network().Dial(ctx, addr)
		switch {
		case err == nil:
			_ = conn.Close()
			reach.opened.Store(true)
		case quorum.Refused(err):
			e.transportNow().Suspect(id)
		case time.Since(began) < limit+2*p.tick: // else this server was asleep
			reach.failed.Store(true)
		}
	})
}

// seekLeader is called every tick while no leader is known.
func (e *ensemble) seekLeader(r *raft.Raft, since time.Duration, p timing) {
	switch {
	case e.onlyVoter(r):
		e.transportNow().Kick()
	case r.LastIndex() > foundingIndex || since > p.lease:
		e.transportNow().Leaderless()
	}
}

// onlyVoter says whether this server has the only vote: it asks no other for one.
func (e *ensemble) onlyVoter(r *raft.Raft) bool {
	self := false
	for _, s := range r.GetConfiguration().Configuration().Servers {
		switch {
		case s.Suffrage != raft.Voter:
		case s.ID != e.n.identity.RaftID:
			return false
		default:
			self = true
		}
	}
	return self && r.State() == raft.Follower
}

// leaderID is the server that this one takes for the leader: the one that Raft does, unless it was
// given up.
func (e *ensemble) leaderID() raft.ServerID {
	r := e.n.raftNow()
	if r == nil {
		return ""
	}
	_, id := r.LeaderWithID()
	if gone := e.gone.Load(); gone != nil && gone.server == id && gone.term == r.CurrentTerm() {
		return ""
	}
	return id
}

// unfollowed says whether this server, which leads, had a quorum in this term and has
// not had one for longer than its lease.
func (e *ensemble) unfollowed(r *raft.Raft) bool {
	trans := e.transportNow()
	if trans == nil {
		return false
	}
	contact := trans.Confirmed(r.CurrentTerm(), r.GetConfiguration().Configuration(), time.Now())
	return !contact.IsZero() && time.Since(contact) > e.n.cfg.timing().lease
}

// setPace makes Raft's timers those of a server that leads, which decide how often
// it sends heartbeats, or those of another one, which never end. Control goroutine.
func (e *ensemble) setPace(leads bool) {
	r := e.n.raftNow()
	if r == nil {
		return
	}
	timeout := idle
	if leads {
		timeout = e.n.cfg.timing().lease
	}
	err := e.n.reload(r, func(c *raft.ReloadableConfig) { c.HeartbeatTimeout, c.ElectionTimeout = timeout, timeout })
	if err != nil {
		e.log.Warn("Raft's timers could not be set", "err", err)
	}
	if leads && r.State() != raft.Leader {
		e.setPace(false) // lost already: the timers of one that leads would start an election
	}
}
