package ensemble

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

// Ensemble is a member's view of its ensemble: all communication with the other servers,
// and this server's knowledge about them. This type starts and stops the parts, which do
// the work:
//
//   - bootstrap.Formation: how a server without Raft state forms or joins an ensemble
//   - joining: how a leader admits a server that asks to join
//   - places: at which addresses the servers are
//   - files: the list of servers in the configuration file
//   - changes (reconcile.go, reconfig.go): the membership
//   - freshness (liveness.go, barrier.go): which sessions are live, and how fresh a
//     follower's state is
//   - following (forward.go, patience.go): the leader to follow, and commands to it
//
// They share a base. A part knows the parts listed before it, never those after it.
type Ensemble struct {
	*base
	*places
	*files
	*changes
	*joining
	*freshness
	*following
	installed chan struct{} // capacity 1: a snapshot was installed
}

// leading is one open leadership. ctx is canceled at its end.
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

// New returns the ensemble that a server is configured to be a member of.
func New(env *Environment, r Rhythm) (*Ensemble, error) {
	i := slices.IndexFunc(env.Config.Members, func(m membership.Member) bool { return m.ID == env.Config.ID })
	if i < 0 {
		return nil, fmt.Errorf("server %d is not on the list of servers in its configuration", env.Config.ID)
	}
	b := &base{env: env, self: env.Config.Members[i], log: env.Config.Logger, rhythm: r}
	b.liveness = session.NewMember(session.Bounds{Sync: b.syncLimit()})
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return assemble(b), nil
}

// assemble connects the parts of an ensemble.
func assemble(b *base) *Ensemble {
	e := &Ensemble{base: b, installed: make(chan struct{}, 1)}
	e.places = &places{base: b}
	e.files = &files{base: b}
	e.changes = &changes{base: b, places: e.places, files: e.files}
	e.places.pending = &e.changes.reconfigs
	e.joining = &joining{base: b, places: e.places, files: e.files, changes: e.changes}
	e.freshness = &freshness{base: b, places: e.places, inquiries: newInquiries()}
	e.following = &following{base: b, places: e.places, freshness: e.freshness}
	return e
}

// Start brings the server up. It returns before the server has found its ensemble,
// because that may have to wait for the other servers.
func (e *Ensemble) Start() error {
	cfg := &e.env.Config
	if err := e.env.OpenState(); err != nil {
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
	e.formation = bootstrap.New(bootstrap.Env{Self: e.self, Members: cfg.Members, NeedsAll: cfg.NeedsAll, ClientPort: cfg.ClientPort, Level: cfg.Level, Hub: e.hub, Log: e.log,
		Settle: e.become, Leads: e.leads, Join: e.join, Called: e.noteAddress}, store, e.env.Identity.RaftID)
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
	case p.env.Config.ListenAll:
		return []string{":" + port}
	case p.env.Config.ListenHost != "":
		return []string{net.JoinHostPort(p.env.Config.ListenHost, port)}
	}
	return line.QuorumAddrs()
}

// handshake returns this server's identity for handshakes.
func (e *Ensemble) handshake() quorum.Identity {
	id := e.env.Identity
	out := quorum.Identity{ServerID: string(id.RaftID), Cluster: quorum.ClusterID(id.ClusterID()),
		List: bootstrap.ListHash(e.env.Config.Members), Nonce: e.env.Local.Nonce}
	if out.ServerID == "" {
		out.ServerID = string(membership.FounderID(e.self.ID))
	}
	return out
}

// become sets this server's identity and makes it durable.
func (e *Ensemble) become(id raft.ServerID, cluster quorum.ClusterID) error {
	next := datadir.IdentityIn(command.ClusterID(cluster), e.env.Config.ID, id)
	if !e.env.Config.Memory {
		if err := next.Write(e.env.Config.Dirs.FS, e.env.Config.Dirs.Log); err != nil {
			return err
		}
	}
	*e.env.Identity = next
	return nil
}

// run makes this server a member of its ensemble and keeps its Raft running.
func (e *Ensemble) run() {
	e.env.Do(func() { e.publishLooking("looking for the other servers of the ensemble") })
	bootstrap, first, err := e.place()
	if err == nil {
		err = e.startMember(bootstrap)
	}
	if err != nil {
		if e.ctx.Err() == nil {
			e.env.Fail(err)
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
					e.env.Fail(err)
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
func (e *Ensemble) place() (bootstrap raft.Configuration, first *bootstrap.Plan, err error) {
	bound := e.formation.State().Bound
	if e.env.Identity.RaftID == "" {
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
		return bootstrap, nil, e.env.Config.Dirs.RefuseLost(e.self.ID, e.env.Stores())
	}
	// A founder that was stopped before it wrote its first entry writes it now.
	if bound != nil && bound.Cluster == quorum.ClusterID(e.env.Identity.ClusterID()) && e.env.Identity.RaftID == membership.FounderID(e.self.ID) {
		bootstrap = bound.Configuration()
	}
	return bootstrap, first, nil
}

// startMember starts the first Raft instance.
func (e *Ensemble) startMember(bootstrap raft.Configuration) error {
	e.env.Machine.Cluster = e.env.Identity.ClusterID()
	e.appliedIndex.Store(e.env.Machine.Index)
	e.hub.SetIdentity(e.handshake())
	if err := e.startRaft(bootstrap); err != nil {
		return err
	}
	e.formation.SetMember(e.env.Identity.RaftID)
	if len(bootstrap.Servers) > 0 {
		return e.formation.MarkTaken()
	}
	return nil
}

// startRaft starts a Raft instance with a new transport.
func (e *Ensemble) startRaft(bootstrap raft.Configuration) error {
	trans := transport.New(transport.Config{
		Hub: e.hub, ID: e.env.Identity.RaftID, Addr: e.self.QuorumAddr, Logger: e.env.Config.RaftLog, Stall: e.stallLimit(), HeartbeatStall: e.heartbeatStall(),
		Standing: e.standing, TermOf: e.termOf, CheckEntry: e.checkEntry, CheckSnapshot: func(q *raft.InstallSnapshotRequest, r io.Reader) error {
			return apply.CheckSnapshot(e.env.Identity.ClusterID(), q, r)
		},
		MaxEntry: forward.MaxRun + propose.MaxBatchBytes,
		Applied:  e.handedOver, FirstIndex: e.firstIndex, Hanging: e.hanging, View: e.view, Elsewhere: e.Addresses, Replays: e.replays,
		Acknowledged: func(id raft.ServerID, took time.Duration) {
			e.env.Counters.Acks.observe(membership.ServerOf(id), took)
		},
		Joined: func() { e.env.Counters.Diffs.Add(1) }, SendingSnapshot: e.env.Counters.sendingSnapshot,
		OpenSnapshot: func() (*raft.SnapshotMeta, io.ReadCloser, error) { return apply.OpenNewest(e.env.Stores().Snapshots()) },
		Installing:   e.env.Machine.Freeze,
		Installed:    e.SnapshotInstalled,
	})
	e.mu.Lock()
	e.transport = trans
	e.mu.Unlock()
	if err := e.env.StartRaft(trans, bootstrap); err != nil {
		return errors.Join(err, trans.Close())
	}
	e.env.Do(func() {}) // make the control goroutine switch to the new instance
	return nil
}

// checkEntry returns an error if an entry from another server can't be stored or
// applied.
func (e *Ensemble) checkEntry(l *raft.Log) error {
	if err := raftlog.CheckReceived(l); err != nil || l.Type != raft.LogCommand {
		return err
	}
	c := e.env.Checkers.Get()
	defer e.env.Checkers.Put(c)
	return c.Entry(l.Data, e.env.Identity.ClusterID())
}

// SnapshotInstalled makes run replace the Raft instance.
func (e *Ensemble) SnapshotInstalled() {
	select {
	case e.installed <- struct{}{}:
	default:
	}
}

// recycle replaces the Raft instance after it has installed a snapshot. The old instance
// still assumes the old end of its log and could refuse the leader's entries forever.
func (e *Ensemble) recycle() error {
	e.log.Info("restarting Raft after a snapshot was installed")
	e.env.StopRaft()
	if e.ctx.Err() != nil {
		return e.ctx.Err()
	}
	return e.startRaft(raft.Configuration{})
}

// openingElection makes the founder with the highest id the first leader, as in
// ZooKeeper, without waiting for an election timeout. It does the same for a server that
// is the only voter. Only one server starts an election: two at once would split the
// votes.
func (e *Ensemble) openingElection(bootstrap raft.Configuration, first *bootstrap.Plan) {
	servers := e.env.RaftNow().GetConfiguration().Configuration().Servers
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
func (e *Ensemble) acceptChange(conn net.Conn, from quorum.Identity) {
	exchange.Respond(conn, from.Beats, func(q *ChangeQuestion) any {
		switch {
		case !e.belongs(from):
			return &changeAnswer{Error: "only a member of the ensemble can do this"}
		case q.Reconfig != nil:
			return &changeAnswer{Reconfig: e.drive(e.ctx, q.Reconfig)}
		}
		return &changeAnswer{Error: "a question that this server does not understand"}
	})
}

// Opened is called on the control goroutine when the LeaderStart of this server's leadership
// was applied.
func (e *Ensemble) Opened(incarnation, term uint64, began time.Time) {
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

// Closed is called on the control goroutine when this server's leadership ends, whether it
// was opened or not.
func (e *Ensemble) Closed() {
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

// Storing is called on Raft's main goroutine with the entries about to be stored, including
// their checksums.
func (e *Ensemble) Storing(entries []*raft.Log) {
	if t := e.leadsBy(); t != nil {
		t.Storing(entries)
	}
}

// Applied is called on Raft's state machine goroutine with the index of each entry applied.
func (e *Ensemble) Applied(index uint64) {
	e.appliedIndex.Store(index)
	e.progress.news()
	if e.catchUp.Load() != nil {
		e.caughtUp()
	}
	if t := e.leadsBy(); t != nil {
		t.Committed(index)
	}
}

// Settle hands leadership to another server. After it, no further Raft instance starts. It is
// called before Raft is shut down permanently.
func (e *Ensemble) Settle() {
	if !e.env.Halted() && e.env.RaftNow() != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*ElectionTimeout)
		if err := e.Transfer(ctx); err != nil {
			e.log.Info("could not hand over leadership", "err", err)
		}
		cancel()
	}
	e.cancel()
	e.wg.Wait()
}

// Silence ends all communication with other servers without waiting, because this server has
// failed.
func (e *Ensemble) Silence() {
	e.cancel()
	e.env.Background(func() { _ = e.hub.Close() })
}

// Close ends all communication with other servers, after Raft was shut down, and waits for
// the goroutines.
func (e *Ensemble) Close() {
	e.cancel()
	if e.hub != nil {
		_ = e.hub.Close()
	}
	e.wg.Wait()
	if t := e.transportNow(); t != nil {
		_ = t.Close()
	}
}
