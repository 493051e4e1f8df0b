package raftfsm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/quorum/transport"
	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/raftfsm/internal/exchange"
	"github.com/zkgo/zkgo/raftfsm/internal/forward"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
	"github.com/zkgo/zkgo/session"
)

// ensemble implements peers for a member of an ensemble: all communication with the other
// servers, and what this server knows about them. This type starts and stops the parts,
// which do the work:
//
//   - bootstrap.Formation: how a server without Raft state forms or joins an ensemble
//   - joining: how a leader admits a server that asks to join
//   - places: at which addresses the servers are
//   - files: the list of servers in the configuration file
//   - changes (reconcile.go, reconfig.go): the membership
//   - freshness (liveness.go, barrier.go): which sessions are live, and what a follower may
//     rely on
//   - following (forward.go, patience.go): the leader to follow, and commands to it
//
// They share a base. A part knows the parts listed before it, never those after it.
type ensemble struct {
	*base
	*places
	*files
	*changes
	*joining
	*freshness
	*following
	installed chan struct{} // capacity 1: a snapshot was installed
}

// leading is one open leadership; ctx ends with it.
type leading struct {
	incarnation uint64
	term        uint64 // contacts in another term prove nothing about this leadership
	since       time.Time
	ctx         context.Context
	cancel      context.CancelFunc
	silent      map[raft.ServerID]bool // used by the reconcile loop
	asked       time.Time              // when it last asked for behaviour levels,
	askedFiles  time.Time              // and for lists of servers
	changing    string                 // the membership that a proposed change replaces; guarded by base.mu
	changingAt  time.Time              // and when the change was proposed
}

// isMember implements peers.
func (*ensemble) isMember() bool { return true }

// newEnsemble returns the ensemble that a server is configured to be a member of.
func newEnsemble(env *environment, r rhythm) (*ensemble, error) {
	i := slices.IndexFunc(env.cfg.Members, func(m membership.Member) bool { return m.ID == env.cfg.ID })
	if i < 0 {
		return nil, fmt.Errorf("server %d is not on the list of servers in its configuration", env.cfg.ID)
	}
	b := &base{env: env, self: env.cfg.Members[i], log: env.cfg.Logger, rhythm: r}
	b.liveness = session.NewMember(session.Bounds{Sync: b.syncLimit()})
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return assemble(b), nil
}

// assemble connects the parts of an ensemble.
func assemble(b *base) *ensemble {
	e := &ensemble{base: b, installed: make(chan struct{}, 1)}
	e.places = &places{base: b}
	e.files = &files{base: b}
	e.changes = &changes{base: b, places: e.places, files: e.files}
	e.joining = &joining{base: b, places: e.places, files: e.files, changes: e.changes}
	e.freshness = &freshness{base: b, places: e.places, inquiries: newInquiries()}
	e.following = &following{base: b, places: e.places, freshness: e.freshness}
	return e
}

func (e *ensemble) start() error {
	cfg := &e.env.cfg
	if err := e.env.openState(); err != nil {
		return err
	}
	dir := cfg.Dirs.Log
	if cfg.Memory {
		dir = ""
	}
	store, err := bootstrap.Open(cfg.Dirs.FS, dir)
	if err != nil {
		return err
	}
	e.listening = e.listenAddrs(&e.self)
	if e.hub, err = quorum.Listen(e.network(), e.listening[0], e.handshake(), e.security(), e.log); err != nil {
		return err
	}
	e.replays = transport.NewReplays(e.hub, e.network())
	if e.listening, err = e.hub.Relisten(e.listening...); err != nil {
		return errors.Join(err, e.hub.Close())
	}
	e.warnIfOpen()
	e.formation = bootstrap.New(bootstrap.Env{Self: e.self, Members: cfg.Members, ClientPort: cfg.ClientPort, Level: cfg.Level, Hub: e.hub, Log: e.log,
		Settle: e.become, Leads: e.leads, Join: e.join, Called: e.noteAddress}, store, e.env.identity.RaftID)
	e.hub.Handle(quorum.Probe, e.formation.Serve)
	e.hub.Handle(quorum.Change, e.acceptChange)
	e.hub.Handle(quorum.Forward, e.acceptForward)
	e.hub.Handle(quorum.Liveness, e.acceptLiveness)
	e.wg.Go(e.run)
	e.wg.Go(e.waitingLoop)
	e.wg.Go(e.keepNames)
	return nil
}

// listenAddrs returns the addresses to listen on for this server's line.
func (p *places) listenAddrs(line *membership.Member) []string {
	_, port, err := net.SplitHostPort(line.QuorumAddr)
	switch {
	case err != nil:
	case p.env.cfg.ListenAll:
		return []string{":" + port}
	case p.env.cfg.ListenHost != "":
		return []string{net.JoinHostPort(p.env.cfg.ListenHost, port)}
	}
	return line.QuorumAddrs()
}

// handshake returns what this server says about itself in handshakes.
func (e *ensemble) handshake() quorum.Identity {
	id := e.env.identity
	out := quorum.Identity{ServerID: string(id.RaftID), Cluster: quorum.ClusterID(id.ClusterID()),
		List: bootstrap.ListHash(e.env.cfg.Members), Nonce: e.env.intake.Nonce}
	if out.ServerID == "" {
		out.ServerID = string(membership.FounderID(e.self.ID))
	}
	return out
}

// become sets this server's identity and makes it durable.
func (e *ensemble) become(id raft.ServerID, cluster quorum.ClusterID) error {
	next := datadir.IdentityIn(command.ClusterID(cluster), e.env.cfg.ID, id)
	if !e.env.cfg.Memory {
		if err := next.Write(e.env.cfg.Dirs.FS, e.env.cfg.Dirs.Log); err != nil {
			return err
		}
	}
	*e.env.identity = next
	return nil
}

// run makes this server a member of its ensemble and keeps its Raft running.
func (e *ensemble) run() {
	e.env.do(func() { e.publishLooking("looking for the other servers of the ensemble") })
	bootstrap, first, err := e.place()
	if err == nil {
		err = e.startMember(bootstrap)
	}
	if err != nil {
		if e.ctx.Err() == nil {
			e.env.fail(err)
		}
		return
	}
	e.wg.Go(e.admitLoop)
	e.wg.Go(e.followLoop)
	e.wg.Go(e.vigil)
	e.wg.Go(e.reconcileLoop)
	e.wg.Go(e.lookoutLoop)
	e.openingElection(bootstrap, first)
	for {
		select {
		case <-e.installed:
			if err := e.recycle(); err != nil {
				if e.ctx.Err() == nil {
					e.env.fail(err)
				}
				return
			}
		case <-e.ctx.Done():
			return
		}
	}
}

// place determines this server's identity and the configuration to bootstrap Raft with.
// The configuration is empty if this server has Raft state or will get it from a leader.
func (e *ensemble) place() (bootstrap raft.Configuration, first *bootstrap.Plan, err error) {
	bound := e.formation.State().Bound
	if e.env.identity.RaftID == "" {
		formed, err := e.formation.Run(e.ctx)
		if err != nil {
			return bootstrap, nil, err
		}
		if !formed {
			return bootstrap, nil, nil
		}
		bound = e.formation.State().Bound
		first = bound
	}
	if e.formation.State().Taken {
		return bootstrap, nil, e.env.cfg.Dirs.RefuseLost(e.self.ID, e.env.stores())
	}
	// A founder that was stopped before it wrote its first entry writes it now.
	if bound != nil && bound.Cluster == quorum.ClusterID(e.env.identity.ClusterID()) && e.env.identity.RaftID == membership.FounderID(e.self.ID) {
		bootstrap = bound.Configuration()
	}
	return bootstrap, first, nil
}

// startMember starts the first Raft instance.
func (e *ensemble) startMember(bootstrap raft.Configuration) error {
	e.env.machine.Cluster = e.env.identity.ClusterID()
	e.appliedIndex.Store(e.env.machine.Index)
	e.hub.SetIdentity(e.handshake())
	if err := e.startRaft(bootstrap); err != nil {
		return err
	}
	e.formation.SetMember(e.env.identity.RaftID)
	if len(bootstrap.Servers) > 0 {
		return e.formation.MarkTaken()
	}
	return nil
}

// startRaft starts a Raft instance with a transport of its own.
func (e *ensemble) startRaft(bootstrap raft.Configuration) error {
	trans := transport.New(transport.Config{
		Hub: e.hub, ID: e.env.identity.RaftID, Addr: e.self.QuorumAddr, Logger: e.env.cfg.RaftLog, Stall: e.stallLimit(), HeartbeatStall: e.heartbeatStall(),
		Standing: e.standing, TermOf: e.termOf, CheckEntry: e.checkEntry, CheckSnapshot: func(q *raft.InstallSnapshotRequest, r io.Reader) error {
			return apply.CheckSnapshot(e.env.identity.ClusterID(), q, r)
		},
		MaxEntry: forward.MaxRun + propose.MaxBatchBytes,
		Applied:  e.handedOver, FirstIndex: e.firstIndex, Hanging: e.hanging, View: e.view, Elsewhere: e.addresses, Replays: e.replays,
		Acknowledged: func(id raft.ServerID, took time.Duration) {
			e.env.counters.Acks.observe(membership.ServerOf(id), took)
		},
		Joined: func() { e.env.counters.Diffs.Add(1) }, SendingSnapshot: e.env.counters.sendingSnapshot,
		OpenSnapshot: func() (*raft.SnapshotMeta, io.ReadCloser, error) { return apply.OpenNewest(e.env.stores().Snapshots()) },
		Installing:   e.env.machine.Freeze,
		Installed:    e.snapshotInstalled,
	})
	e.mu.Lock()
	e.transport = trans
	e.mu.Unlock()
	if err := e.env.startRaft(trans, bootstrap); err != nil {
		return errors.Join(err, trans.Close())
	}
	e.env.do(func() {}) // make the control goroutine switch to the new instance
	return nil
}

// checkEntry returns an error if an entry from another server can't be stored or
// applied.
func (e *ensemble) checkEntry(l *raft.Log) error {
	if err := raftlog.CheckReceived(l); err != nil || l.Type != raft.LogCommand {
		return err
	}
	c := e.env.checkers.Get()
	defer e.env.checkers.Put(c)
	return c.Entry(l.Data, e.env.identity.ClusterID())
}

// snapshotInstalled makes run replace the Raft instance.
func (e *ensemble) snapshotInstalled() {
	select {
	case e.installed <- struct{}{}:
	default:
	}
}

// recycle replaces the Raft instance after it has installed a snapshot. The old instance
// still assumes the old end of its log and could refuse the leader's entries forever.
func (e *ensemble) recycle() error {
	e.log.Info("starting Raft anew after a snapshot was installed")
	e.env.stopRaft()
	if e.ctx.Err() != nil {
		return e.ctx.Err()
	}
	return e.startRaft(raft.Configuration{})
}

// openingElection makes the founder with the highest id the first leader, as in
// ZooKeeper, without waiting for an election timeout. It does the same for a server that
// is the only voter. Only one server starts an election: two at once would split the
// votes.
func (e *ensemble) openingElection(bootstrap raft.Configuration, first *bootstrap.Plan) {
	servers := e.env.raftNow().GetConfiguration().Configuration().Servers
	voters := 0
	for _, s := range servers {
		if s.Suffrage == raft.Voter {
			voters++
		}
	}
	switch {
	case voters == 1 && e.hasVote():
	case first != nil && first.First(e.self.ID):
		if !e.formation.AwaitAll(e.ctx, first, func() bool { return e.leaderID() != "" }) {
			return
		}
	default:
		return
	}
	e.transportNow().Kick()
}

// formedIndex is the last index of a log in which no server has led yet. Servers with
// such a log don't compete for the leadership; openingElection decides.
const formedIndex = 1

// acceptChange handles a reconfig from a client of another member. That member has
// authenticated the client and reports its identities, so only a member may ask.
func (e *ensemble) acceptChange(conn net.Conn, from quorum.Identity) {
	exchange.Respond(conn, from.Beats, func(q *changeQuestion) any {
		switch {
		case !e.belongs(from):
			return &changeAnswer{Error: "this takes a member of the ensemble"}
		case q.Reconfig != nil:
			return &changeAnswer{Reconfig: e.drive(e.ctx, q.Reconfig)}
		}
		return &changeAnswer{Error: "a question that this server does not understand"}
	})
}

// opened implements peers.
func (e *ensemble) opened(incarnation, term uint64, began time.Time) {
	l := &leading{incarnation: incarnation, term: term, since: time.Now(), silent: make(map[raft.ServerID]bool)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	e.liveness.Opened(began)
	e.mu.Lock()
	e.lead = l
	e.target, e.unnamed = target{}, false
	if e.attending != nil {
		e.attending()
	}
	e.mu.Unlock()
	giveUp(e.inquiries.take()) // no report will carry them: this server is the leader
	e.reconfigs.poke()
}

// closed implements peers.
func (e *ensemble) closed() {
	e.setPace(false)
	e.mu.Lock()
	l, trans := e.lead, e.transport
	e.lead = nil
	e.mu.Unlock()
	if l != nil {
		l.cancel()
	}
	if trans != nil {
		trans.Deposed()
	}
	e.reconfigs.abandon()
}

// storing implements peers.
func (e *ensemble) storing(entries []*raft.Log) {
	if t := e.leadsBy(); t != nil {
		t.Storing(entries)
	}
}

// applied implements peers.
func (e *ensemble) applied(index uint64) {
	e.appliedIndex.Store(index)
	e.progress.news()
	if e.catchUp.Load() != nil {
		e.caughtUp()
	}
	if t := e.leadsBy(); t != nil {
		t.Committed(index)
	}
}

// settle implements peers.
func (e *ensemble) settle() {
	if !e.env.halted() && e.env.raftNow() != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*electionTimeout)
		if err := e.transfer(ctx); err != nil {
			e.log.Info("the lead was not handed over", "err", err)
		}
		cancel()
	}
	e.cancel()
	e.wg.Wait()
}

// silence implements peers.
func (e *ensemble) silence() {
	e.cancel()
	e.env.background(func() { _ = e.hub.Close() })
}

// close implements peers.
func (e *ensemble) close() {
	e.cancel()
	if e.hub != nil {
		_ = e.hub.Close()
	}
	e.wg.Wait()
	if t := e.transportNow(); t != nil {
		_ = t.Close()
	}
}
