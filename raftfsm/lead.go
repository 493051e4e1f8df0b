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
	term        uint64            // Raft's, when the leadership began
	refused     chan error        // the error if the LeaderStart was not accepted
	proposer    *propose.Proposer // nil until the leadership is open
	began       time.Time         // when its LeaderStart was proposed, by the machine's clock
	expiries    expiryLog
	reaped      time.Time // when the last search for znodes to reap began
}

// startRetry is the pause before another LeaderStart after Raft refused one, or a
// batch.
const startRetry = 20 * time.Millisecond

// control is the goroutine that handles everything about leadership, so that all
// transitions happen in one place and every Status is published in order.
func (n *Node) control() {
	defer close(n.controlDone)
	for {
		var leads <-chan bool
		if r := n.raftNow(); r != nil {
			leads = r.LeaderCh()
		}
		var failed, refused, unsent <-chan error
		if n.forwarding != nil {
			unsent = n.forwarding.Failed
		}
		if l := n.lead; l != nil {
			refused = l.refused
			if l.proposer != nil {
				failed = l.proposer.Failed
			}
		}
		select {
		case won := <-leads:
			// A value may stand for several: true while this server leads means that it
			// lost leadership and won it again.
			n.stepDown(raft.ErrLeadershipLost)
			if won {
				n.beginLead()
			}
		case <-n.mail.wake:
			for _, e := range n.mail.take() {
				n.handle(e)
			}
		case err := <-refused:
			n.stepDown(fmt.Errorf("starting to lead: %w", err))
			n.retry.Reset(startRetry)
		case <-n.retry.C:
			n.beginLead()
		case err := <-failed:
			// Raft fails the batch before it steps down, if it steps down at all. A
			// leadership begun right away would be lost right away, along with the
			// commands that arrived in between.
			n.stepDown(err)
			n.retry.Reset(startRetry)
		case err := <-unsent:
			n.unfollow(err)
		case err := <-n.stores.Failed():
			n.storesFailed(err)
		case <-n.duty.C:
			n.duties()
		case <-n.stopping:
			n.leave()
			return
		}
	}
}

// handle acts on one event.
func (n *Node) handle(e event) {
	switch e.kind {
	case evState:
		n.stateChanged(&e.state)
	case evTouched:
		n.deadlines.Heard(e.session, e.at)
	case evFailed:
		n.halt(e.err)
	case evDo:
		e.do()
	}
}

// stateChanged acts on an event of the state machine.
func (n *Node) stateChanged(e *apply.Event) {
	switch e.Kind {
	case apply.Started:
		n.started(e.Server, e.Incarnation)
	case apply.Attached:
		n.deadlines.Attached(session.Deadline{Session: e.Session, Gen: e.Gen, Timeout: e.Timeout}, n.clocks())
		n.schedule()
	case apply.Ended:
		n.deadlines.Ended(e.Session)
	}
}

// started acts on an applied LeaderStart. A command that was sent to an earlier
// incarnation and is not applied by now never will be.
func (n *Node) started(server, incarnation uint64) {
	if n.lead != nil && n.lead.incarnation == incarnation {
		n.openLead()
		return
	}
	n.unfollow(propose.ErrNewLeader)
	switch {
	case server != n.cfg.ID:
		n.peers.Led(server, incarnation)
	case n.lead != nil && n.lead.proposer != nil:
		// A LeaderStart of an earlier leadership of this server was delayed on its way
		// into the log. No batch of the current incarnation counts any more.
		n.stepDown(propose.ErrNewLeader)
		n.beginLead()
	}
}

// beginLead proposes the LeaderStart of a new incarnation if Raft still says that this
// server leads.
func (n *Node) beginLead() {
	r := n.raftNow()
	if n.lead != nil || n.halted || r == nil || r.State() != raft.Leader {
		return
	}
	l := &leadership{incarnation: rand.Uint64(), term: r.CurrentTerm(), began: time.Now(), refused: make(chan error, 1)}
	n.unfollow(propose.ErrNewLeader)
	n.lead = l
	n.incarnation.Store(l.incarnation)
	s := command.LeaderStart{
		Server: uint8(n.cfg.ID), Incarnation: l.incarnation, Time: n.cfg.Wall().UnixMilli(),
		Policy: n.cfg.Policy, Level: n.startLevel(), Cluster: n.identity.ClusterID(),
	}
	n.peers.Begin(&s)
	entry := s.Append(nil)
	n.background.Go(func() {
		if err := r.Apply(entry, 0).Error(); err != nil {
			l.refused <- err
		}
	})
}

// openLead takes up the leader's duties. Its LeaderStart is applied, and so is
// everything that was committed before it.
func (n *Node) openLead() {
	n.deadlines.Reset()
	n.lead.reaped = n.cfg.Now()
	n.lead.proposer = &propose.Proposer{
		Raft: n.raftNow(), Incarnation: n.lead.incarnation, Policy: n.cfg.Policy, Full: n.cfg.Full, Now: n.cfg.Wall, Sizes: &n.proposed, Claim: n.machine.Claims.Last,
		Local: n.intake, Remote: n.remote, Backlog: n.backlog, Keeps: n.keepsEntries(),
	}
	n.proposing.Store(n.lead.proposer)
	n.lead.proposer.Start(&n.background)
	n.remote.Open(n.lead.incarnation)
	n.peers.Opened(n.lead.incarnation, n.lead.term, n.lead.began)
	n.schedule()
	n.setStatus(n.statusNow(true, ""))
}

// stepDown ends the incarnation. The fate of everything that was proposed in it and is
// not yet applied is uncertain.
func (n *Node) stepDown(reason error) {
	l := n.lead
	if l == nil {
		return
	}
	n.lead = nil
	n.incarnation.Store(0)
	if l.proposer != nil {
		l.proposer.Halt()
	}
	n.remote.Close()
	n.deadlines.Reset()
	n.peers.Closed()
	n.lose(reason)
	if l.proposer != nil {
		n.setStatus(n.statusNow(false, reason.Error()))
	}
}

// statusNow returns the Status of a server that leads or looks for a leader.
func (n *Node) statusNow(leads bool, reason string) Status {
	s := Status{Reason: reason}
	if leads {
		s.Role, s.Leader, s.Serving = Leader, n.cfg.ID, true
		if n.cfg.standalone() {
			s.Role = Standalone
		}
	}
	n.tree.RLock()
	s.Epoch = uint32(n.tree.LastZxid() >> 32)
	n.tree.RUnlock()
	return s
}

// lose gives up all commands in flight from this server.
func (n *Node) lose(reason error) {
	if n.intake.Lose() {
		n.cfg.Handler.Lost(reason)
	}
}

// halt ends all service after a failure that only a restart can fix.
func (n *Node) halt(err error) {
	if n.halted {
		return
	}
	n.halted = true
	n.log.Error("this server stops", "err", err)
	n.intake.Close(err)
	n.stepDown(err)
	n.unfollow(err)
	n.lose(err)
	n.peers.Silence()
	n.setStatus(n.statusNow(false, err.Error()))
	n.errs <- err
}

// storesFailed is halt for an error of the stores.
func (n *Node) storesFailed(err error) {
	n.broken = true
	n.halt(err)
}

// leave ends the control goroutine. It still proposes the queued commands, as long as
// that succeeds. Raft may never complete a pending future once it is shut down, so
// leave waits for it before that.
func (n *Node) leave() {
	timer := time.NewTimer(closeLimit)
	defer timer.Stop()
	for n.lead != nil && n.lead.proposer == nil {
		select {
		case <-n.mail.wake:
			for _, e := range n.mail.take() {
				n.handle(e)
			}
		case err := <-n.lead.refused:
			n.stepDown(err)
		case err := <-n.stores.Failed():
			n.storesFailed(err)
		case <-timer.C:
			n.stepDown(ErrClosed)
		}
	}
	if l := n.lead; l != nil {
		l.proposer.Drain()
		select {
		case <-l.proposer.Done:
		case err := <-n.stores.Failed():
			n.storesFailed(err)
		case <-timer.C:
		}
		l.proposer.Halt()
	}
	n.incarnation.Store(0)
	n.unfollow(ErrClosed)
	n.lose(ErrClosed)
}

// schedule sets the timer of the duties. A leader without sessions wakes up only for
// the reaper.
func (n *Node) schedule() {
	if n.lead == nil || n.lead.proposer == nil {
		return
	}
	next := n.lead.reaped.Add(n.cfg.ContainerInterval).Sub(n.cfg.Now())
	if !n.deadlines.Empty() {
		next = min(next, n.deadlines.Interval())
	}
	if wait := max(next, time.Millisecond); n.dutyAt.IsZero() || time.Until(n.dutyAt) > wait {
		n.dutyAt = time.Now().Add(wait)
		n.duty.Reset(wait)
	}
}

// duties does the leader's periodic work.
func (n *Node) duties() {
	n.dutyAt = time.Time{}
	l := n.lead
	if l == nil || l.proposer == nil {
		return
	}
	if !n.deadlines.Empty() {
		n.expire()
	}
	if now := n.cfg.Now(); now.Sub(l.reaped) >= n.cfg.ContainerInterval || now.Before(l.reaped) {
		l.reaped = now
		n.reap(n.cfg.Wall())
	}
	n.schedule()
}

// clocks reads the clocks that decide about sessions.
func (n *Node) clocks() session.Clocks { return session.Clocks{Now: n.cfg.Now(), Running: time.Now()} }

// expire ends the sessions that no server has heard from within their timeout. A
// session with a command in flight is alive, however slow the log is.
func (n *Node) expire() {
	now := n.clocks()
	n.lead.expiries.renew(n.log, now.Now)
	n.live = n.peers.AppendLive(n.cfg.Handler.Live(n.live[:0]))
	n.peers.Touched(n.live)
	n.intake.Sessions(func(id int64) { n.live = append(n.live, id) })
	for _, id := range n.live {
		n.deadlines.Heard(id, now.Now)
	}
	for _, s := range n.deadlines.Expired(now, n.peers.ConfirmedRecently) {
		n.lead.expiries.log(n.log, now.Now, s)
		n.proposeOwn(&command.Command{Kind: command.KindExpire, Session: s.Session, Gen: s.Gen})
	}
}

// reap proposes to delete containers and TTL znodes that are due.
func (n *Node) reap(now time.Time) {
	limit := int(int64(n.cfg.ContainerMaxPerMin) * int64(n.cfg.ContainerInterval) / int64(time.Minute))
	n.tree.RLock()
	found := n.tree.Reapable(now.UnixMilli(), n.cfg.ContainerMaxNeverUse, max(limit, 1))
	n.tree.RUnlock()
	for i := range found {
		n.proposeOwn(&command.Command{Kind: command.KindReap, Op: proto.OpDeleteContainer, Body: found[i].Append(nil)})
	}
}

// proposeOwn proposes a command of the leader itself. It never blocks.
func (n *Node) proposeOwn(c *command.Command) {
	if err := n.intake.Propose(c, true); err != nil {
		n.log.Debug("a command of the leader is dropped", "kind", c.Kind, "err", err)
	}
}
