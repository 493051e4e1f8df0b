package ensemble

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/exchange"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
)

// A client's reconfig.
//
//  1. The server that received it asks the leader to drive it: the leader checks it, adds
//     joining servers, and gives and removes votes until the voters match the new
//     membership. A leader that is not among them hands over leadership, and the server
//     asks the next leader.
//  2. Then the server proposes the reconfig like any other write. Applying it changes the
//     membership and /zookeeper/config, fires the watches and answers the client, on
//     servers that leave as well.
//  3. The leader removes the servers that left from Raft's configuration.
//
// So a client that got a success reply may switch the old servers off. The apply decides:
// a leader refuses only for reasons that are not in the log. Its refusal goes through the
// log, too, because a refused reconfig uses up a zxid.
//
// In the meantime the client's connection accepts no further request, because its
// writes are executed in order.

const (
	// DriveTimeout bounds step 1.
	DriveTimeout = 30 * time.Second
	// holdTarget limits the time that a leader waits for step 2 before it reverts.
	holdTarget = 10 * time.Second
	// lingerFor is the time for which a server that was too slow to join still gets the
	// log (NeedsAll). It asks again within seconds. Otherwise a large state would never
	// arrive in time.
	lingerFor = 30 * time.Second
	// drivePause is the pause before asking another leader.
	drivePause = 50 * time.Millisecond
)

// DriveRequest asks the leader to drive a reconfig.
type DriveRequest struct {
	IDs  []proto.ID `json:"ids"`
	Body []byte     `json:"body"` // the client's request
}

// driveAnswer is the result of a driveRequest.
type driveAnswer struct {
	Code  proto.Code `json:"code"`
	Retry bool       `json:"retry,omitempty"` // ask again, perhaps another leader
}

// ChangeQuestion is the message on a stream of kind quorum.Change, on which both servers
// are members.
type ChangeQuestion struct {
	Reconfig *DriveRequest `json:"reconfig,omitempty"`
}

// changeAnswer is the reply to a changeQuestion.
type changeAnswer struct {
	Reconfig *driveAnswer `json:"reconfig,omitempty"`
	Error    string       `json:"error,omitempty"`
}

// reconfigs is a leader's view of the pending reconfig.
type reconfigs struct {
	mu      sync.Mutex
	target  *membership.List
	drivers int              // how many servers are asking for it
	until   time.Time        // when to give it up, once no server asks for it
	late    *membership.List // the newest reconfig that was given up
	lateAt  time.Time        // and when
	last    step             // the loop's last step
	changed chan struct{}    // closed and replaced when last is set
	wake    chan struct{}    // capacity 1
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

// current returns the membership that a reconfig asks for, or nil if there is no
// reconfig.
func (r *reconfigs) current() *membership.List {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.target != nil && r.drivers == 0 && !time.Now().Before(r.until) {
		r.target = nil
	}
	return r.target
}

// reached ends the reconfig when m has the servers that it asks for.
func (r *reconfigs) reached(m *membership.List) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.target != nil && r.drivers == 0 && r.target.SameServers(m) {
		r.target = nil
	}
}

// begin makes target the wanted membership, unless another membership already is.
func (r *reconfigs) begin(target *membership.List) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.target != nil && string(r.target.Text()) != string(target.Text()) && (r.drivers > 0 || time.Now().Before(r.until)) {
		return false
	}
	r.target = target
	r.drivers++
	r.last = step{}
	return true
}

// end records that one driver stopped asking. The target stays for a while if the
// reconfig is about to be proposed.
func (r *reconfigs) end(keep bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drivers--
	r.until = time.Now()
	if keep {
		r.until = r.until.Add(holdTarget)
	} else {
		r.late, r.lateAt = r.target, r.until
	}
}

// lingers reports whether a server was to join in a reconfig that was given up recently.
func (r *reconfigs) lingers(server uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.late.Lists(server) && time.Since(r.lateAt) < lingerFor
}

// report publishes the loop's last step to the waiting drivers.
func (r *reconfigs) report(s step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = s
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// look returns the loop's last step and a channel that is closed at the next report.
func (r *reconfigs) look() (step, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.last, r.changed
}

// abandon drops the pending reconfig. Its drivers ask the next leader.
func (r *reconfigs) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = nil
}

// busy reports whether a reconfig to another membership is pending.
func (r *reconfigs) busy(target *membership.List) bool {
	t := r.current()
	return t != nil && string(t.Text()) != string(target.Text())
}

// drive changes Raft's configuration as a reconfig requests.
func (c *changes) drive(ctx context.Context, q *DriveRequest) *driveAnswer {
	l := c.leadNow()
	if l == nil {
		return &driveAnswer{Retry: true}
	}
	target, code := c.examine(q, c.hear(l))
	if code != proto.Ok {
		return &driveAnswer{Code: code}
	}
	if !c.reconfigs.begin(target) {
		return &driveAnswer{Code: proto.ErrReconfigInProgress}
	}
	a := c.pursue(ctx, l, target)
	c.reconfigs.end(a.Code == proto.Ok && !a.Retry)
	return a
}

// pursue waits until Raft's configuration matches target.
func (c *changes) pursue(ctx context.Context, l *leading, target *membership.List) *driveAnswer {
	c.reconfigs.poke()
	timeout := time.NewTimer(DriveTimeout)
	defer timeout.Stop()
	refused := time.NewTimer(givenUpAfter)
	defer refused.Stop()
	absent := time.NewTimer(comesWithin)
	defer absent.Stop()
	for {
		s, changed := c.reconfigs.look()
		if s.want == target && s.change == nil && !s.waiting && !s.refused && !s.leave && len(s.missing) == 0 {
			return &driveAnswer{}
		}
		if !s.refused {
			refused.Reset(givenUpAfter)
		}
		if len(s.missing) == 0 {
			absent.Reset(comesWithin)
		}
		select {
		case <-changed:
		case <-refused.C:
			c.log.Warn("undoing a reconfig: servers that it needs for a majority have gone down", "asked", string(target.Text()))
			return &driveAnswer{Code: proto.ErrNewConfigNoQuorum}
		case <-absent.C:
			c.log.Warn("giving up and undoing a reconfig: it adds servers that do not call this server, or that this server can't call; do they run, with the certificates of this ensemble?", "servers", s.missing)
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

// examine checks a reconfig in ZooKeeper's order, from the leader's state and the servers
// that have answered it.
func (c *changes) examine(q *DriveRequest, live map[raft.ServerID]bool) (*membership.List, proto.Code) {
	var req proto.ReconfigRequest
	r := proto.NewReader(q.Body)
	req.Decode(&r)
	if r.Err() != nil {
		return nil, proto.ErrMarshalling
	}
	if m := c.replicated(); m != nil {
		c.reconfigs.reached(m)
	}
	tree := c.env.Machine.Tree
	tree.RLock()
	defer tree.RUnlock()
	policy := c.env.Config.Policy
	target, code := c.env.Machine.CheckReconfig(&req, policy, q.IDs)
	if code != proto.Ok && code != proto.ErrBadVersion && code != proto.ErrBadArguments && code != proto.ErrMarshalling {
		return nil, code
	}
	if t := c.reconfigs.current(); t != nil && (target == nil || c.reconfigs.busy(target)) {
		return nil, proto.ErrReconfigInProgress
	}
	if code == proto.ErrBadArguments && c.env.Machine.MayWriteConfig(policy, q.IDs) {
		if why := c.env.Machine.Conflict(&req, policy); why != nil {
			c.log.Warn("rejecting a reconfig: servers can't listen at the addresses in its list", "reason", why)
		}
	}
	if code != proto.Ok {
		return nil, code
	}
	if _, ok := c.planFor(target, live).Plan(); !ok {
		if c.env.Machine.MayReconfig(target, policy, q.IDs) == proto.Ok { // otherwise any client could fill the log
			c.log.Warn("rejecting a reconfig: no majority of the old or the new voters is up", "asked", string(target.Text()))
		}
		return nil, proto.ErrNewConfigNoQuorum
	}
	return target, c.env.Machine.MayReconfig(target, policy, q.IDs)
}

// Reconfig proposes a client's reconfig after the leader has driven it.
func (c *changes) Reconfig(cmd *command.Command) error {
	var req proto.ReconfigRequest
	r := proto.NewReader(cmd.Body)
	if req.Decode(&r); r.Err() == nil && membership.TooLong(&req) {
		return c.env.Local.Propose(cmd, false) // applying it shows the error, and no leader needs to read it before
	}
	c.liveness.Hold(cmd.Session) // keep the client's session alive in the meantime
	defer c.liveness.Release(cmd.Session)
	ctx, cancel := context.WithTimeout(c.ctx, 2*DriveTimeout)
	defer cancel()
	q := &DriveRequest{IDs: cmd.IDs, Body: cmd.Body}
	driven := false // by a leader that has been deposed
	for {
		a := c.askDrive(ctx, q)
		switch {
		case ctx.Err() != nil && c.ctx.Err() == nil:
			return c.env.Local.Propose(refusedReconfig(cmd, proto.ErrNewConfigNoQuorum), false)
		case ctx.Err() != nil:
			return propose.ErrClosed
		case a == nil || a.Retry:
			driven = driven || a != nil
			pauseFor(ctx, drivePause)
		case driven && a.Code == proto.ErrNewConfigNoQuorum:
			pauseFor(ctx, drivePause) // the new leader has not contacted the other servers yet
		case a.Code == proto.ErrReconfigInProgress || a.Code == proto.ErrNewConfigNoQuorum:
			return c.env.Local.Propose(refusedReconfig(cmd, a.Code), false)
		default:
			return c.env.Local.Propose(cmd, false) // applying it shows any other error
		}
	}
}

// askDrive asks the leader. It returns nil when it can't ask any.
func (c *changes) askDrive(ctx context.Context, q *DriveRequest) *driveAnswer {
	if c.leadNow() != nil {
		return c.drive(ctx, q)
	}
	leading, leader, addr := c.leads()
	if leading || addr == "" || leader == c.self.ID {
		return nil
	}
	id, _ := c.locate(leader)
	a, err := askChange(ctx, c.hub, addr, string(id), q)
	if err != nil {
		c.log.Debug("could not send a reconfig to the leader", "leader", leader, "err", err)
		return nil
	}
	return a
}

// askChange asks the server at addr to drive a reconfig.
func askChange(ctx context.Context, hub *quorum.Hub, addr, to string, q *DriveRequest) (*driveAnswer, error) {
	conn, _, err := hub.Dial(ctx, quorum.Change, addr, to)
	if err != nil {
		return nil, err
	}
	var a changeAnswer
	if err := exchange.Ask(ctx, conn, &ChangeQuestion{q}, &a); err != nil {
		return nil, err
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return a.Reconfig, nil
}

// refusedReconfig returns the command for a reconfig that the leader refused for
// reasons that are not in the log.
func refusedReconfig(c *command.Command, code proto.Code) *command.Command {
	r := *c
	r.Kind = command.KindReconfigRefused
	r.Body = binary.BigEndian.AppendUint32(nil, uint32(code))
	return &r
}
