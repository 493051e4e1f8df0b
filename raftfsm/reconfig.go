package raftfsm

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// A client's reconfig.
//
//  1. The server that got it asks the leader to drive: check it, add whoever
//     joins, give and take votes until the voters are those of the new
//     membership. A leader that is not among them hands over the lead, and the
//     next one is asked.
//  2. Then the server proposes the reconfig like any other write. Applying it
//     changes the membership and /zookeeper/config, fires the watches and
//     answers the client, on servers that leave as well.
//  3. Whoever leads removes those that left from Raft's configuration.
//
// So a client that was told of success may switch the old servers off. It is
// the apply that decides: a leader only refuses what the log cannot know, and
// that too goes through the log, since a refused reconfig takes a zxid.
//
// While this goes on the client's connection takes no further request, as its
// writes are executed in their order.

const (
	// driveTimeout bounds step 1.
	driveTimeout = 30 * time.Second
	// holdTarget is how long a leader waits for step 2 before it goes back.
	holdTarget = 10 * time.Second
	// drivePause is the pause before asking another leader.
	drivePause = 50 * time.Millisecond
)

// driveRequest asks the leader to drive.
type driveRequest struct {
	IDs  []proto.ID `json:"ids"`
	Body []byte     `json:"body"` // the client's request
}

// driveAnswer says what came of it.
type driveAnswer struct {
	Code  proto.Code `json:"code"`
	Retry bool       `json:"retry,omitempty"` // ask again, another leader perhaps
}

// reconfigs is a leader's view of the reconfig under way.
type reconfigs struct {
	mu      sync.Mutex
	target  *membership
	drivers int           // how many are asking for it
	until   time.Time     // when it is given up, once nobody is
	last    step          // what the loop did last
	changed chan struct{} // closed and replaced when last is set
	wake    chan struct{} // capacity 1
}

func (r *reconfigs) poke() {
	select {
	case r.poked() <- struct{}{}:
	default:
	}
}

func (r *reconfigs) poked() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wake == nil {
		r.wake = make(chan struct{}, 1)
	}
	return r.wake
}

// current is the membership that a reconfig asks for, nil without one.
func (r *reconfigs) current() *membership {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.target != nil && r.drivers == 0 && time.Now().After(r.until) {
		r.target = nil
	}
	return r.target
}

// reached ends the reconfig when it has become the membership.
func (r *reconfigs) reached(m *membership) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.target != nil && r.drivers == 0 && r.target.sameServers(m) {
		r.target = nil
	}
}

// begin makes target the wanted membership, unless another one is.
func (r *reconfigs) begin(target *membership) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.target != nil && string(r.target.text()) != string(target.text()) && (r.drivers > 0 || time.Now().Before(r.until)) {
		return false
	}
	r.target = target
	r.drivers++
	r.last = step{}
	return true
}

// end says that one asks no longer. The target is kept for a while if the
// reconfig is about to be proposed.
func (r *reconfigs) end(keep bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drivers--
	r.until = time.Now()
	if keep {
		r.until = r.until.Add(holdTarget)
	}
}

// report tells those who wait what the loop found.
func (r *reconfigs) report(s step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = s
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// look returns what the loop found last and a channel for the next news.
func (r *reconfigs) look() (step, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.last, r.changed
}

// abandon forgets the reconfig under way: whoever asked for it asks the next
// leader.
func (r *reconfigs) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = nil
}

// busy says whether a reconfig to another membership is under way.
func (r *reconfigs) busy(target *membership) bool {
	t := r.current()
	return t != nil && string(t.text()) != string(target.text())
}

// drive brings Raft's configuration to where a reconfig wants it.
func (e *ensemble) drive(ctx context.Context, q *driveRequest) *driveAnswer {
	l := e.leadNow()
	if l == nil {
		return &driveAnswer{Retry: true}
	}
	target, code := e.examine(q, e.hear(l))
	if code != proto.Ok {
		return &driveAnswer{Code: code}
	}
	if !e.reconfigs.begin(target) {
		return &driveAnswer{Code: proto.ErrReconfigInProgress}
	}
	a := e.pursue(ctx, l, target)
	e.reconfigs.end(a.Code == proto.Ok && !a.Retry)
	return a
}

// pursue waits until Raft's configuration is where target wants it.
func (e *ensemble) pursue(ctx context.Context, l *leading, target *membership) *driveAnswer {
	e.reconfigs.poke()
	timeout := time.NewTimer(driveTimeout)
	defer timeout.Stop()
	refused := time.NewTimer(givenUpAfter)
	defer refused.Stop()
	for {
		s, changed := e.reconfigs.look()
		if s.want == target && s.change == nil && !s.waiting && !s.refused && !s.leave {
			return &driveAnswer{}
		}
		if !s.refused {
			refused.Reset(givenUpAfter)
		}
		select {
		case <-changed:
		case <-refused.C:
			e.log.Warn("a reconfig is given up and undone: servers that it needs for a majority have gone down", "asked", string(target.text()))
			return &driveAnswer{Code: proto.ErrNewConfigNoQuorum}
		case <-l.ctx.Done():
			return &driveAnswer{Retry: true}
		case <-ctx.Done():
			return &driveAnswer{Retry: true}
		case <-timeout.C:
			return &driveAnswer{Code: proto.ErrNewConfigNoQuorum}
		}
	}
}

// examine checks a reconfig in ZooKeeper's order, with what the leader knows and
// which servers have answered it.
func (e *ensemble) examine(q *driveRequest, live map[raft.ServerID]bool) (*membership, proto.Code) {
	var req proto.ReconfigRequest
	r := proto.NewReader(q.Body)
	req.Decode(&r)
	if r.Err() != nil {
		return nil, proto.ErrMarshalling
	}
	if m := e.replicated(); m != nil {
		e.reconfigs.reached(m)
	}
	e.n.tree.RLock()
	defer e.n.tree.RUnlock()
	policy := e.n.cfg.Policy
	target, code := e.n.machine.checkReconfig(&req, policy)
	if code != proto.Ok && code != proto.ErrBadVersion && code != proto.ErrBadArguments && code != proto.ErrMarshalling {
		return nil, code
	}
	if t := e.reconfigs.current(); t != nil && (target == nil || e.reconfigs.busy(target)) {
		return nil, proto.ErrReconfigInProgress
	}
	if code != proto.Ok {
		return nil, code
	}
	if _, ok := e.planFor(target, live).plan(); !ok {
		e.log.Warn("a reconfig is refused: a majority of the voters before it or after it is not there", "asked", string(target.text()))
		return nil, proto.ErrNewConfigNoQuorum
	}
	return target, e.n.machine.mayReconfig(target, policy, q.IDs)
}

// reconfig proposes a client's reconfig after the leader has driven it.
func (e *ensemble) reconfig(c *Command) error {
	e.mu.Lock()
	e.reporting[c.Session]++ // its client is not to be taken for dead meanwhile
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		if e.reporting[c.Session]--; e.reporting[c.Session] == 0 {
			delete(e.reporting, c.Session)
		}
		e.mu.Unlock()
	}()
	ctx, cancel := context.WithTimeout(e.ctx, 2*driveTimeout)
	defer cancel()
	q := &driveRequest{IDs: c.IDs, Body: c.Body}
	driven := false // by a leader that is none any more
	for {
		a := e.askDrive(ctx, q)
		switch {
		case ctx.Err() != nil && e.ctx.Err() == nil:
			return e.n.intake.propose(refusedReconfig(c, proto.ErrNewConfigNoQuorum), false)
		case ctx.Err() != nil:
			return ErrClosed
		case a == nil || a.Retry:
			driven = driven || a != nil
			pauseFor(ctx, drivePause)
		case driven && a.Code == proto.ErrNewConfigNoQuorum:
			pauseFor(ctx, drivePause) // the new leader has yet to meet the others
		case a.Code == proto.ErrReconfigInProgress || a.Code == proto.ErrNewConfigNoQuorum:
			return e.n.intake.propose(refusedReconfig(c, a.Code), false)
		default:
			return e.n.intake.propose(c, false) // what else is wrong with it shows there
		}
	}
}

// askDrive asks whoever leads, nil when nobody could be asked.
func (e *ensemble) askDrive(ctx context.Context, q *driveRequest) *driveAnswer {
	if e.leadNow() != nil {
		return e.drive(ctx, q)
	}
	leading, leader, addr := e.leads()
	if leading || addr == "" || leader == e.self.ID {
		return nil
	}
	id, _ := e.locate(leader)
	a, _, err := ask(ctx, e.hub, addr, string(id), &question{Reconfig: q})
	if err != nil {
		e.log.Debug("the leader could not be asked for a reconfig", "leader", leader, "err", err)
		return nil
	}
	return a.Reconfig
}

// refusedReconfig is a reconfig that the leader refused, for reasons that are
// not in the log.
func refusedReconfig(c *Command, code proto.Code) *Command {
	r := *c
	r.Kind = KindReconfigRefused
	r.Body = binary.BigEndian.AppendUint32(nil, uint32(code))
	return &r
}

// checkReconfig is what a reconfig makes of the membership, or why not, up to
// the question whether it is allowed. The tree is locked.
func (m *machine) checkReconfig(q *proto.ReconfigRequest, policy tree.Policy) (*membership, proto.Code) {
	switch {
	case policy&tree.ReconfigEnabled == 0:
		return nil, proto.ErrReconfigDisabled
	case m.config == nil:
		return nil, proto.ErrUnimplemented // a server that stands alone
	}
	now, err := parseState(m.config)
	if err != nil {
		return nil, proto.ErrSystemError
	}
	if q.CurConfigID != -1 && uint64(q.CurConfigID) != now.version {
		return nil, proto.ErrBadVersion
	}
	return now.next(q, policy)
}

// mayReconfig says whether somebody may write /zookeeper/config. The tree is
// locked.
func (m *machine) mayReconfig(target *membership, policy tree.Policy, ids []proto.ID) proto.Code {
	_, over := target.tooLarge()
	switch {
	case policy&tree.SkipACL == 0 && !tree.Allowed(m.tree.Get(tree.ConfigPath).ACL(), proto.PermWrite, ids):
		return proto.ErrNoAuth
	case over:
		return proto.ErrBadArguments
	}
	return proto.Ok
}

// applyReconfig applies a client's reconfig.
func (m *machine) applyReconfig(c *Command) {
	next, code := m.checkReconfig(&m.requests.reconfig, m.tx.Policy)
	if code == proto.Ok {
		code = m.mayReconfig(next, m.tx.Policy, c.IDs)
	}
	if code != proto.Ok {
		m.advance(c)
		m.out.Code = code
		return
	}
	tx := m.begin(c)
	next.version = uint64(tx.Zxid)
	if m.level < namedLevel {
		next.forgetNamed()
	}
	m.config = next.state()
	m.ran(m.tree.SetConfig(tx, configText(m.config), -1))
}

// applyRefusal applies a reconfig that the leader refused.
func (m *machine) applyRefusal(c *Command) error {
	code, err := refusalCode(c.Body)
	if err != nil {
		return err
	}
	m.out.Kind, m.out.Op, m.out.Body = KindRequest, proto.OpReconfig, nil
	if session := m.sessions.Check(c.Session, c.Gen); session != proto.Ok {
		m.out.Code = session
		if session == proto.ErrSessionExpired {
			m.advance(c)
		}
		return nil
	}
	m.advance(c)
	m.out.Code = code
	return nil
}
