package raftfsm

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
	"github.com/zkgo/zkgo/session"
)

// leadership is one incarnation of this server as leader. It exists from the moment
// Raft makes this server leader. It opens when the state machine applies its
// LeaderStart: the proposer runs and sessions have deadlines from then on. Before that,
// the state machine may lag far behind the committed log.
type leadership struct {
	incarnation uint64
	term        uint64            // Raft's term at the start of the leadership
	refused     chan error        // the error if the LeaderStart was not accepted
	proposer    *propose.Proposer // nil until the leadership is open
	began       time.Time         // when its LeaderStart was proposed, by the machine's clock
	expiries    expiryLog
	reaped      time.Time // start of the last search for znodes to reap
}

// startRetry is the pause before another LeaderStart after Raft refused one, or a
// batch.
const startRetry = 20 * time.Millisecond

// controller owns the leadership of a Node. Its methods run on the control goroutine.
type controller struct {
	n           *Node
	done        chan struct{} // closed when the goroutine has ended
	lead        *leadership
	forwarding  *propose.Forwarding // while this server follows
	halted      bool
	broken      bool // halted because the stores failed
	duty, retry *time.Timer
	dutyAt      time.Time // when duty fires; zero: not set
	live        []int64
}

func newController(n *Node) *controller {
	return &controller{n: n, done: make(chan struct{}), duty: stoppedTimer(), retry: stoppedTimer()}
}

// run is the goroutine that handles everything about leadership, so that all
// transitions happen in one place and every Status is published in order.
func (c *controller) run() {
	defer close(c.done)
	for {
		var leads <-chan bool
		if r := c.n.replica.Raft(); r != nil {
			leads = r.LeaderCh()
		}
		var failed, refused, unsent <-chan error
		if c.forwarding != nil {
			unsent = c.forwarding.Failed
		}
		if l := c.lead; l != nil {
			refused = l.refused
			if l.proposer != nil {
				failed = l.proposer.Failed
			}
		}
		select {
		case won := <-leads:
			// A value may represent several changes: true while this server leads means
			// that it lost leadership and won it again.
			c.stepDown(raft.ErrLeadershipLost)
			if won {
				c.beginLead()
			}
		case <-c.n.mail.wake:
			for _, e := range c.n.mail.take() {
				c.handle(e)
			}
		case err := <-refused:
			c.stepDown(fmt.Errorf("starting to lead: %w", err))
			c.retry.Reset(startRetry)
		case <-c.retry.C:
			c.beginLead()
		case err := <-failed:
			// Raft fails the batch before it steps down, if it steps down at all. If a
			// leadership started immediately, it would be lost immediately, along with
			// the commands that arrived in between.
			c.stepDown(err)
			c.retry.Reset(startRetry)
		case err := <-unsent:
			c.unfollow(err)
		case err := <-c.n.replica.Stores().Failed():
			c.storesFailed(err)
		case <-c.duty.C:
			c.duties()
		case <-c.n.stopping:
			c.leave()
			return
		}
	}
}

// handle acts on one event.
func (c *controller) handle(e event) {
	switch e.kind {
	case evState:
		c.stateChanged(&e.state)
	case evTouched:
		c.n.deadlines.Heard(e.session, e.at)
		c.n.forwards.note(e.session)
	case evFailed:
		c.halt(e.err)
	case evDo:
		e.do()
	}
}

// stateChanged acts on an event of the state machine.
func (c *controller) stateChanged(e *apply.Event) {
	switch e.Kind {
	case apply.Started:
		c.started(e.Server, e.Incarnation)
	case apply.Attached:
		c.n.deadlines.Attached(session.Deadline{Session: e.Session, Gen: e.Gen, Timeout: e.Timeout}, c.clocks())
		c.schedule()
	case apply.Ended:
		c.n.deadlines.Ended(e.Session)
	case apply.Forwarded:
		c.n.forwards.add(e.Forward)
	}
}

// started acts on an applied LeaderStart. A command that was sent to an earlier
// incarnation and is not applied by now never will be.
func (c *controller) started(server, incarnation uint64) {
	if c.lead != nil && c.lead.incarnation == incarnation {
		c.openLead()
		return
	}
	c.unfollow(propose.ErrNewLeader)
	switch {
	case server != c.n.cfg.ID:
		c.n.peers.Led(server, incarnation)
	case c.lead != nil && c.lead.proposer != nil:
		// A LeaderStart of an earlier leadership of this server was delayed on its way
		// into the log. No batch of the current incarnation counts any more.
		c.stepDown(propose.ErrNewLeader)
		c.beginLead()
	}
}

// beginLead proposes the LeaderStart of a new incarnation if, according to Raft, this
// server still leads.
func (c *controller) beginLead() {
	r := c.n.replica.Raft()
	if c.lead != nil || c.halted || r == nil || r.State() != raft.Leader {
		return
	}
	l := &leadership{incarnation: rand.Uint64(), term: r.CurrentTerm(), began: time.Now(), refused: make(chan error, 1)}
	c.unfollow(propose.ErrNewLeader)
	c.lead = l
	c.n.incarnation.Store(l.incarnation)
	s := command.LeaderStart{
		Server: uint8(c.n.cfg.ID), Incarnation: l.incarnation, Time: c.n.cfg.Wall().UnixMilli(),
		Policy: c.n.cfg.Policy, Level: c.startLevel(), Cluster: c.n.replica.Identity.ClusterID(),
	}
	c.n.peers.Begin(&s)
	entry := s.Append(nil)
	c.n.background.Go(func() {
		if err := r.Apply(entry, 0).Error(); err != nil {
			l.refused <- err
		}
	})
}

// openLead starts the leader's duties. At this point, its LeaderStart and all entries
// committed before it are applied.
func (c *controller) openLead() {
	c.n.deadlines.Reset()
	c.lead.reaped = c.n.cfg.Now()
	c.lead.proposer = &propose.Proposer{
		Raft: c.n.replica.Raft(), Incarnation: c.lead.incarnation, Policy: c.n.cfg.Policy, Full: c.n.cfg.Full, Now: c.n.cfg.Wall, Sizes: &c.n.proposed, Claim: c.n.replica.Machine.Claims.Last,
		Local: c.n.local, Remote: c.n.remote, Backlog: c.n.backlog, Keeps: c.n.replica.Stores().Keeps(),
	}
	c.n.proposing.Store(c.lead.proposer)
	c.lead.proposer.Start(&c.n.background)
	c.n.remote.Open(c.lead.incarnation)
	c.n.peers.Opened(c.lead.incarnation, c.lead.term, c.lead.began)
	c.schedule()
	c.publish(c.statusNow(true, ""))
}

// stepDown ends the incarnation. The fate of everything that was proposed in it and is
// not yet applied is uncertain.
func (c *controller) stepDown(reason error) {
	l := c.lead
	if l == nil {
		return
	}
	c.lead = nil
	c.n.incarnation.Store(0)
	c.n.forwards.reset() // their clients are given up when the next leadership starts
	if l.proposer != nil {
		l.proposer.Halt()
	}
	c.n.remote.Close()
	c.n.deadlines.Reset()
	c.n.peers.Closed()
	c.lose(reason)
	if l.proposer != nil {
		c.publish(c.statusNow(false, reason.Error()))
	}
}

// statusNow returns the Status of a server that leads or looks for a leader.
func (c *controller) statusNow(leads bool, reason string) Status {
	s := Status{Reason: reason}
	if leads {
		s.Role, s.Leader, s.Serving = Leader, c.n.cfg.ID, true
		if c.n.cfg.standalone() {
			s.Role = Standalone
		}
	}
	c.n.Tree().RLock()
	s.Epoch = uint32(c.n.Tree().LastZxid() >> 32)
	c.n.Tree().RUnlock()
	return s
}

// lose gives up all commands in flight from this server.
func (c *controller) lose(reason error) {
	if c.n.local.Lose() {
		c.n.cfg.Handler.Lost(reason)
	}
}

// halt ends all service after a failure that only a restart can fix.
func (c *controller) halt(err error) {
	if c.halted {
		return
	}
	c.halted = true
	c.n.cfg.Logger.Error("this server is stopping", "err", err)
	c.n.local.Close(err)
	c.stepDown(err)
	c.unfollow(err)
	c.lose(err)
	c.n.peers.Silence()
	c.publish(c.statusNow(false, err.Error()))
	c.n.errs <- err
}

// storesFailed is halt for an error of the stores.
func (c *controller) storesFailed(err error) {
	c.broken = true
	c.halt(err)
}

// leave ends the control goroutine. It still proposes the queued commands, as long as
// that succeeds. Raft may never complete a pending future once it is shut down, so
// leave waits for it before that.
func (c *controller) leave() {
	timer := time.NewTimer(closeLimit)
	defer timer.Stop()
	for c.lead != nil && c.lead.proposer == nil {
		select {
		case <-c.n.mail.wake:
			for _, e := range c.n.mail.take() {
				c.handle(e)
			}
		case err := <-c.lead.refused:
			c.stepDown(err)
		case err := <-c.n.replica.Stores().Failed():
			c.storesFailed(err)
		case <-timer.C:
			c.stepDown(ErrClosed)
		}
	}
	if l := c.lead; l != nil {
		l.proposer.Drain()
		select {
		case <-l.proposer.Done:
		case err := <-c.n.replica.Stores().Failed():
			c.storesFailed(err)
		case <-timer.C:
		}
		l.proposer.Halt()
	}
	c.n.incarnation.Store(0)
	c.unfollow(ErrClosed)
	c.lose(ErrClosed)
}

// schedule sets the timer of the duties. A leader without sessions wakes up only for
// the reaper.
func (c *controller) schedule() {
	if c.lead == nil || c.lead.proposer == nil {
		return
	}
	next := c.lead.reaped.Add(c.n.cfg.Containers.Interval).Sub(c.n.cfg.Now())
	if !c.n.deadlines.Empty() {
		next = min(next, c.n.deadlines.Interval())
	}
	if wait := max(next, time.Millisecond); c.dutyAt.IsZero() || time.Until(c.dutyAt) > wait {
		c.dutyAt = time.Now().Add(wait)
		c.duty.Reset(wait)
	}
}

// duties does the leader's periodic work.
func (c *controller) duties() {
	c.dutyAt = time.Time{}
	l := c.lead
	if l == nil || l.proposer == nil {
		return
	}
	if mirror, _, _ := c.n.replica.Machine.Mirroring.Now(); mirror.Rests() {
		// Another ensemble decides about sessions and znodes, or none does. When that ends,
		// the state machine reports all sessions again.
		c.n.deadlines.Reset()
		l.reaped = c.n.cfg.Now()
		c.schedule()
		return
	}
	if !c.n.deadlines.Empty() {
		c.expire()
	}
	if now := c.n.cfg.Now(); now.Sub(l.reaped) >= c.n.cfg.Containers.Interval || now.Before(l.reaped) {
		l.reaped = now
		c.reap(c.n.cfg.Wall())
	}
	c.schedule()
}

// clocks reads the clocks that decide about sessions.
func (c *controller) clocks() session.Clocks {
	return session.Clocks{Now: c.n.cfg.Now(), Running: time.Now()}
}

// expire ends the sessions that no server has heard from within their timeout. A
// session with a command in flight is alive, however slow the log is.
func (c *controller) expire() {
	now := c.clocks()
	c.lead.expiries.renew(c.n.cfg.Logger, now.Now)
	c.live = c.n.peers.AppendLive(c.n.cfg.Handler.Live(c.live[:0]))
	c.n.peers.Touched(c.live)
	c.n.local.Sessions(func(id int64) { c.live = append(c.live, id) })
	for _, id := range c.live {
		c.n.deadlines.Heard(id, now.Now)
	}
	for _, s := range c.n.deadlines.Expired(now, c.n.peers.ConfirmedRecently) {
		c.lead.expiries.log(c.n.cfg.Logger, now.Now, s)
		c.n.proposeOwn(&command.Command{Kind: command.KindExpire, Session: s.Session, Gen: s.Gen})
	}
}

// reap proposes to delete containers and TTL znodes that are due.
func (c *controller) reap(now time.Time) {
	limit := int(int64(c.n.cfg.Containers.MaxPerMin) * int64(c.n.cfg.Containers.Interval) / int64(time.Minute))
	c.n.Tree().RLock()
	found := c.n.Tree().Reapable(now.UnixMilli(), c.n.cfg.Containers.MaxNeverUsed, max(limit, 1))
	c.n.Tree().RUnlock()
	for i := range found {
		c.n.proposeOwn(&command.Command{Kind: command.KindReap, Op: proto.OpDeleteContainer, Body: found[i].Append(nil)})
	}
}

// proposeOwn proposes a command of the leader itself. It never blocks.
func (n *Node) proposeOwn(c *command.Command) {
	if err := n.local.Propose(c, true); err != nil {
		n.cfg.Logger.Debug("dropping a command of the leader", "kind", c.Kind, "err", err)
	}
}
