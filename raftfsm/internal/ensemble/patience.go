package ensemble

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// Timing contains the timeouts that follow from the operator's syncLimit × tickTime: how
// long a server waits before it gives up a leader, and a leader before it gives up its
// leadership.
//
// Raft has a single timer for this, the follower's. It can't distinguish a dead leader
// from one that gets no processor time, nor from a follower that was asleep itself. So
// we set it to never, and the loop below decides instead:
//
//   - A leader is dead if its port refuses connections. transport.Transport.Suspect
//     notices that immediately, not this loop.
//   - A leader that is silent, and doesn't accept a connection either, is cut off or its
//     machine is down. The server gives it up after timing.dead. The kernel accepts
//     connections however busy the machine is.
//   - A leader that is silent on a machine that accepts connections may only be slow. The
//     server gives it up after timing.slow, which has no upper bound.
//
// Silence counts only while this server was awake: if the loop looks later than it meant
// to, it counts one tick more than it meant to wait.
//
// A server hides a leader that it gave up from everything in this package that asks for
// the leader. As after a crash, the servers agree on the next leader in a pre-vote poll
// (internal/quorum/transport/poll.go), which needs a majority that has given up the old
// one.
type Timing struct {
	// Lease limits the time that a leader leads without hearing from a quorum.
	Lease time.Duration
	// pace is Raft's timeout of a leader. It sends heartbeats every tenth to fifth of
	// that, which is less than ask, or with each report that must be answered soon.
	pace time.Duration
	// Ask is the silence after which a server checks whether the leader's machine
	// accepts connections. For dead and slow, see above.
	Ask, Dead, Slow time.Duration
	// tick is the interval of the checks while the leader is silent. It checks less often
	// otherwise, because each check wakes an idle process.
	tick time.Duration
}

const (
	// resumeWithin bounds the time without writes after a silent loss of the leader.
	resumeWithin = 5 * time.Second
	// leastPatience is the shortest syncLimit × tickTime that we respect. With less, a
	// garbage collection would look like a dead server.
	leastPatience = time.Second
	// Never is a Raft timeout that never fires.
	Never = 100_000 * time.Hour
)

// Timing derives the timeouts from the configuration.
func (c *Config) Timing() Timing {
	limit := max(time.Duration(c.SyncLimit)*c.TickTime, leastPatience)
	bound := min(limit, resumeWithin)
	return Timing{
		Lease: bound / 2,
		pace:  bound * 2 / 3,
		Ask:   bound / 5,
		Dead:  bound * 2 / 5,
		Slow:  limit * 2 / 5,
		tick:  bound / 25,
	}
}

// leadOf is one server's leadership in one term of Raft.
type leadOf struct {
	server raft.ServerID
	term   uint64
}

// silence measures how long the leader has been silent.
type silence struct {
	lead    leadOf
	contact time.Time // the newest sign of life from it
	looked  time.Time
	lasted  time.Duration // only the time that this server was awake
}

// look is called with the server that Raft considers the leader and the newest sign of
// life from it. The time since the previous call counts only up to most.
func (s *silence) look(lead leadOf, contact, now time.Time, most time.Duration) time.Duration {
	awake := min(now.Sub(s.looked), most)
	switch {
	case lead != s.lead:
		s.lasted = 0
	case contact.After(s.contact):
		s.lasted = min(now.Sub(contact), awake)
	default:
		s.lasted += awake
	}
	s.lead, s.contact, s.looked = lead, contact, now
	return s.lasted
}

// reachability tells whether a silent leader's machine accepts connections.
type reachability struct {
	busy    atomic.Bool
	calling atomic.Bool // a roll call is under way
	last    time.Time   // start of the last attempt
	opened  atomic.Bool // an attempt has succeeded since the leader fell silent
	failed  atomic.Bool // an attempt has failed since
}

// vigil watches the leader until this server is closed.
func (f *following) vigil() {
	w := watchman{f: f, Timing: f.env.Config.Timing()}
	pause := w.tick
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-f.ctx.Done():
			return
		}
		pause = w.look(pause)
		timer.Reset(pause)
	}
}

// watchman is the state of vigil.
type watchman struct {
	f *following
	Timing
	quiet silence
	reach reachability
	lost  time.Time // since when there is no known leader
}

// look checks the leader after a pause and returns when to do so again.
func (w *watchman) look(pause time.Duration) time.Duration {
	r := w.f.env.RaftNow()
	_, leader := r.LeaderWithID()
	if r.State() == raft.Leader {
		w.lost = time.Time{}
		return w.f.rhythm.Next(w.Ask / 2)
	}
	next := w.tick
	if leader != "" {
		lasted := w.quiet.look(leadOf{leader, r.CurrentTerm()}, r.LastContact(), time.Now(), pause+w.tick)
		w.f.judge(&w.quiet, &w.reach, lasted, w.Timing)
		next = max(next, min(w.Ask-lasted, w.f.rhythm.Next(w.Ask/2)))
	}
	if w.f.leaderID() != "" {
		w.lost = time.Time{}
		return next
	}
	if w.lost.IsZero() {
		w.lost = time.Now()
	}
	w.f.seekLeader(r, time.Since(w.lost), w.Timing)
	return w.tick
}

// judge gives the leader up, or accepts it again.
func (f *following) judge(quiet *silence, reach *reachability, lasted time.Duration, p Timing) {
	if lasted < p.Ask {
		reach.opened.Store(false)
		reach.failed.Store(false)
		if f.gone.Swap(nil) != nil {
			f.log.Info("receiving messages from the leader again", "leader", string(quiet.lead.server))
		}
		return
	}
	if f.gone.Load() != nil || f.removed() && !f.hasVote() {
		return
	}
	if lasted >= p.Slow || lasted >= p.Dead && reach.failed.Load() && !reach.opened.Load() {
		lead := quiet.lead
		f.gone.Store(&lead)
		f.log.Warn("the leader is silent, looking for another one", "leader", string(lead.server), "silent", lasted.Round(time.Millisecond),
			"accepts connections", reach.opened.Load())
		f.env.Do(func() {
			if f.leaderID() == "" {
				f.publishLooking("the leader is silent")
			}
		})
		return
	}
	f.reach(quiet.lead.server, reach, p)
	if !reach.calling.Swap(true) {
		f.wg.Go(func() {
			defer reach.calling.Store(false)
			f.transportNow().RollCall(f.ctx)
			pauseFor(f.ctx, AnsweredFor/4)
		})
	}
}

// AnsweredFor is the maximum age of a quorum's answer that makes an election likely soon.
const AnsweredFor = 2 * time.Second

// Electing reports whether this server hears from no leader, but a quorum of servers has
// answered it so recently that there may be a new leader soon.
func (f *following) Electing() bool {
	trans := f.transportNow()
	return trans != nil && f.leadNow() == nil && !f.removed() && trans.QuorumRuns(AnsweredFor)
}

// reach tests repeatedly during the silence whether a server's machine accepts a
// connection. A refused connection makes the transport suspect the server.
func (f *following) reach(id raft.ServerID, reach *reachability, p Timing) {
	limit := (p.Dead - p.Ask) / 2
	if reach.busy.Load() || time.Since(reach.last) < limit/2 {
		return
	}
	_, addr := f.locate(membership.ServerOf(id))
	if addr == "" {
		return
	}
	reach.last = time.Now()
	reach.busy.Store(true)
	f.wg.Go(func() {
		defer reach.busy.Store(false)
		ctx, cancel := context.WithTimeout(f.ctx, limit)
		defer cancel()
		began := time.Now()
		conn, err := f.places.network().Dial(ctx, addr)
		switch {
		case err == nil:
			_ = conn.Close()
			reach.opened.Store(true)
		case quorum.Refused(err):
			f.transportNow().Suspect(id)
		case time.Since(began) < limit+2*p.tick: // otherwise this server was asleep
			reach.failed.Store(true)
		}
	})
}

// seekLeader is called on each tick while no leader is known.
func (f *following) seekLeader(r *raft.Raft, since time.Duration, p Timing) {
	switch {
	case f.onlyVoter(r):
		f.transportNow().Kick()
	case r.LastIndex() > formedIndex || since > p.Lease:
		f.transportNow().Leaderless()
	}
}

// onlyVoter reports whether this server has the only vote, so it needs no other vote.
func (f *following) onlyVoter(r *raft.Raft) bool {
	self := false
	for _, s := range r.GetConfiguration().Configuration().Servers {
		switch {
		case s.Suffrage != raft.Voter:
		case s.ID != f.env.Identity.RaftID:
			return false
		default:
			self = true
		}
	}
	return self && r.State() == raft.Follower
}

// setPace sets Raft's timers. As a leader's, they determine how often it sends
// heartbeats. On other servers they never fire. Runs on the control goroutine.
func (e *Ensemble) setPace(leads bool) {
	r := e.env.RaftNow()
	if r == nil {
		return
	}
	timeout := Never
	if leads {
		timeout = e.env.Config.Timing().pace
	}
	err := e.env.Reload(r, func(c *raft.ReloadableConfig) { c.HeartbeatTimeout, c.ElectionTimeout = timeout, timeout })
	if err != nil {
		e.log.Warn("Raft's timers could not be set", "err", err)
	}
	if leads && r.State() != raft.Leader {
		e.setPace(false) // it no longer leads: a leader's timers would start an election
	}
}
