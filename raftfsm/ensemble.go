package raftfsm

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/quorum/transport"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
	"github.com/zkgo/zkgo/session"
)

// ensemble implements others for a member of an ensemble. It holds all communication
// with the other servers, and what this server knows about them.
//
//   - formation.go, ballot.go: how a server without Raft state forms or joins an
//     ensemble
//   - forward.go: commands to the leader
//   - liveness.go: which sessions are live, and what a follower may rely on
//   - reconcile.go, reconfig.go: the membership
//
// Lock order: with mu held, no function is called that waits or takes another lock.
type ensemble struct {
	n         *Node
	self      membership.Member // as listed in this server's configuration file
	log       *slog.Logger
	hub       *quorum.Hub
	replays   *transport.Replays // for tests; nil: every message arrives once
	formation *formation
	joins     joins
	reconfigs reconfigs
	rhythm    rhythm

	ctx    context.Context // ends with settle
	cancel context.CancelFunc
	wg     sync.WaitGroup

	appliedIndex atomic.Uint64
	catchUp      atomic.Pointer[catchUp] // nil: not catching up
	following    atomic.Uint64           // incarnation published as followed, 0 none
	installed    chan struct{}           // capacity 1: a snapshot was installed
	gone         atomic.Pointer[leadOf]  // the leader that this server gave up, while Raft still names it; nil: none
	progress     progress
	liveness     *session.Member
	inquiries    *inquiries
	blames       blames
	unreadable   atomic.Pointer[[]byte] // the membership that could not be read and was reported

	// Used by the reconcile loop only.
	listening   []string  // the addresses of the quorum port
	listenTried time.Time // when it last tried to listen on another address
	asking      string    // the server and address last asked in vain,
	askedAt     time.Time // and when

	mu            sync.Mutex
	transport     *transport.Transport // of the current Raft instance
	lead          *leading             // while this server's leadership is open
	target        target               // the leader to follow according to the log
	unnamed       bool                 // target comes from a snapshot, without the server: Raft knows the leader
	attending     context.CancelFunc
	unattended    time.Time        // when the last stream of commands to a leader ended
	written       *membership.List // list written to the configuration file since the start; nil: Config.Members
	mismatch      string           // the reconfig that would make the membership match the file,
	told          string           // as last logged for the operator
	mismatchSince time.Time
	listenWant    []string // the quorum addresses that a reconfig has set for this server,
	listenErr     error    // and why it can't listen there
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
	changing    string                 // the membership that a proposed change replaces; guarded by ensemble.mu
	changingAt  time.Time              // and when the change was proposed
}

// target is a leadership of another server; none if incarnation is 0.
type target struct {
	server      uint64 // NoServer until Raft names the leader
	incarnation uint64
}

var _ others = (*ensemble)(nil)

// isMember implements others.
func (*ensemble) isMember() bool { return true }

// newEnsemble returns the ensemble that n is configured to be a member of.
func newEnsemble(n *Node) (*ensemble, error) {
	i := slices.IndexFunc(n.cfg.Members, func(m membership.Member) bool { return m.ID == n.cfg.ID })
	if i < 0 {
		return nil, fmt.Errorf("server %d is not on the list of servers in its configuration", n.cfg.ID)
	}
	e := &ensemble{n: n, self: n.cfg.Members[i], log: n.log, installed: make(chan struct{}, 1), inquiries: newInquiries(),
		rhythm: n.rhythm}
	e.liveness = session.NewMember(session.Bounds{Sync: e.syncLimit()})
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e, nil
}

func (e *ensemble) start() error {
	n := e.n
	if err := n.openState(); err != nil {
		return err
	}
	dir := n.cfg.LogDir
	if n.cfg.Memory {
		dir = ""
	}
	store, err := openSeat(n.cfg.FS, dir)
	if err != nil {
		return err
	}
	e.listening = e.listenAddrs(&e.self)
	if e.hub, err = quorum.Listen(e.network(), e.listening[0], e.identity(), e.security(), e.log); err != nil {
		return err
	}
	e.replays = transport.NewReplays(e.hub, e.network())
	if e.listening, err = e.hub.Relisten(e.listening...); err != nil {
		return errors.Join(err, e.hub.Close())
	}
	e.warnIfOpen()
	e.formation = &formation{self: e.self, members: n.cfg.Members, clientPort: n.cfg.ClientPort, level: n.cfg.newest, hub: e.hub, store: store, settle: e.become,
		log: e.log, leads: e.leads, join: e.join, phase: phaseEmpty,
		table: make(map[uint64]sighting), changed: make(chan struct{}, 1)}
	if store.seat.Bound != nil {
		e.formation.phase = phaseBound
	}
	if n.identity.RaftID != "" {
		// This server is a member even before its Raft runs. If the others took it for an
		// empty server, they could form an ensemble without its data.
		e.formation.fixed = true
		e.formation.member(n.identity.RaftID)
	}
	e.hub.Handle(quorum.Probe, e.acceptProbe)
	e.hub.Handle(quorum.Change, e.acceptChange)
	e.hub.Handle(quorum.Forward, e.acceptForward)
	e.hub.Handle(quorum.Liveness, e.acceptLiveness)
	e.wg.Go(e.run)
	e.wg.Go(e.waitingLoop)
	e.wg.Go(e.keepNames)
	return nil
}

// listenAddrs returns the addresses to listen on for this server's line.
func (e *ensemble) listenAddrs(line *membership.Member) []string {
	_, port, err := net.SplitHostPort(line.QuorumAddr)
	switch {
	case err != nil:
	case e.n.cfg.ListenAll:
		return []string{":" + port}
	case e.n.cfg.ListenHost != "":
		return []string{net.JoinHostPort(e.n.cfg.ListenHost, port)}
	}
	return line.QuorumAddrs()
}

// identity returns what this server says about itself in handshakes.
func (e *ensemble) identity() quorum.Identity {
	id := e.n.identity
	out := quorum.Identity{ServerID: string(id.RaftID), Cluster: quorum.ClusterID(id.clusterID()),
		List: listHash(e.n.cfg.Members), Nonce: e.n.intake.Nonce}
	if out.ServerID == "" {
		out.ServerID = string(membership.FounderID(e.self.ID))
	}
	return out
}

// become sets this server's identity and makes it durable.
func (e *ensemble) become(id raft.ServerID, cluster quorum.ClusterID) error {
	next := identity{Format: identityFormat, Server: e.n.cfg.ID, RaftID: id, Cluster: hex.EncodeToString(cluster[:])}
	if !e.n.cfg.Memory {
		if err := next.write(e.n.cfg.FS, e.n.cfg.LogDir); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(e.n.cfg.LogDir, identityFile), err)
		}
	}
	e.n.identity = next
	return nil
}

// run makes this server a member of its ensemble and keeps its Raft running.
func (e *ensemble) run() {
	e.n.do(func() { e.publishLooking("looking for the other servers of the ensemble") })
	bootstrap, first, err := e.place()
	if err == nil {
		err = e.startMember(bootstrap)
	}
	if err != nil {
		if e.ctx.Err() == nil {
			e.n.mail.post([]event{{kind: evFailed, err: err}})
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
					e.n.mail.post([]event{{kind: evFailed, err: err}})
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
func (e *ensemble) place() (bootstrap raft.Configuration, first *founding, err error) {
	bound := e.formation.held().Bound
	if e.n.identity.RaftID == "" {
		founded, err := e.formation.run(e.ctx)
		if err != nil {
			return bootstrap, nil, err
		}
		if !founded {
			return bootstrap, nil, nil
		}
		bound = e.formation.held().Bound
		first = bound
	}
	if e.formation.held().Taken {
		has, err := raft.HasExistingState(e.n.stores.Logs(), e.n.stores.Stable(), e.n.stores.Snapshots())
		if err == nil && !has {
			err = errStateLost(e.n.cfg.LogDir, e.self.ID, e.n.cfg.SnapDir)
		}
		return bootstrap, nil, err
	}
	// A founder that was stopped before it wrote its first entry writes it now.
	if bound != nil && bound.Cluster == quorum.ClusterID(e.n.identity.clusterID()) && e.n.identity.RaftID == membership.FounderID(e.self.ID) {
		bootstrap = bound.configuration()
	}
	return bootstrap, first, nil
}

// startMember starts the first Raft instance.
func (e *ensemble) startMember(bootstrap raft.Configuration) error {
	e.n.machine.cluster = e.n.identity.clusterID()
	e.appliedIndex.Store(e.n.machine.index)
	e.hub.SetIdentity(e.identity())
	if err := e.startRaft(bootstrap); err != nil {
		return err
	}
	e.formation.member(e.n.identity.RaftID)
	if len(bootstrap.Servers) > 0 {
		return e.formation.taken()
	}
	return nil
}

// startRaft starts a Raft instance with a transport of its own.
func (e *ensemble) startRaft(bootstrap raft.Configuration) error {
	trans := transport.New(transport.Config{
		Hub: e.hub, ID: e.n.identity.RaftID, Addr: e.self.QuorumAddr, Logger: raftLogger(e.log), Stall: e.stallLimit(), HeartbeatStall: e.heartbeatStall(),
		Standing: e.standing, TermOf: e.termOf, CheckEntry: e.checkEntry, CheckSnapshot: e.checkSnapshot, MaxEntry: maxForwarded + propose.MaxBatchBytes,
		Applied: e.handedOver, FirstIndex: e.firstIndex, Hanging: e.hanging, View: e.view, Elsewhere: e.addresses, Replays: e.replays,
		Acknowledged: func(id raft.ServerID, took time.Duration) { e.n.Numbers().Acks.observe(membership.ServerOf(id), took) },
		Joined:       func() { e.n.Numbers().Diffs.Add(1) }, SendingSnapshot: e.n.Numbers().sendingSnapshot,
		OpenSnapshot: e.n.openNewest,
		Installing:   func() { e.n.machine.freezeNext.Store(true) },
		Installed: func() {
			select {
			case e.installed <- struct{}{}:
			default:
			}
		},
	})
	e.n.transport = trans
	e.mu.Lock()
	e.transport = trans
	e.mu.Unlock()
	if err := e.n.startRaft(bootstrap); err != nil {
		return errors.Join(err, trans.Close())
	}
	e.n.do(func() {}) // make the control goroutine switch to the new instance
	return nil
}

// recycle replaces the Raft instance after it has installed a snapshot. The old instance
// still assumes the old end of its log and could refuse the leader's entries forever.
func (e *ensemble) recycle() error {
	e.log.Info("starting Raft anew after a snapshot was installed")
	shutDown(e.n.raftNow(), e.n.transport)
	if e.ctx.Err() != nil {
		return e.ctx.Err()
	}
	return e.startRaft(raft.Configuration{})
}

// openingElection makes the founder with the highest id the first leader, as in
// ZooKeeper, without waiting for an election timeout. It does the same for a server that
// is the only voter. Only one server starts an election: two at once would split the
// votes.
func (e *ensemble) openingElection(bootstrap raft.Configuration, first *founding) {
	servers := e.n.raftNow().GetConfiguration().Configuration().Servers
	voters := 0
	for _, s := range servers {
		if s.Suffrage == raft.Voter {
			voters++
		}
	}
	switch {
	case voters == 1 && e.hasVote():
	case first != nil && first.first(e.self.ID):
		if !e.awaitFounders(first) {
			return
		}
	default:
		return
	}
	e.transportNow().Kick()
}

// awaitFounders waits until all founders run Raft or, after the grace period, a
// majority. It returns false if another leader appears first.
func (e *ensemble) awaitFounders(b *founding) bool {
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	e.formation.askAll(ctx, &wg)
	enough := time.Now().Add(grace)
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		members, all := e.formation.settled(b)
		if all || members >= e.formation.majority() && time.Now().After(enough) {
			return true
		}
		if e.leaderID() != "" {
			return false
		}
		select {
		case <-e.formation.changed:
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

func (e *ensemble) transportNow() *transport.Transport {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.transport
}

// handedOver returns the newest index that Raft passed to the state machine.
func (e *ensemble) handedOver() uint64 {
	if r := e.n.raftNow(); r != nil {
		return r.AppliedIndex()
	}
	return 0
}

// firstIndex returns the index of the oldest entry in the log.
func (e *ensemble) firstIndex() uint64 {
	first, err := e.n.stores.Logs().FirstIndex()
	if err != nil {
		return 0
	}
	return first
}

// hanging returns how long the current write to the log's disk has been waiting.
func (e *ensemble) hanging() time.Duration { return e.n.stores.Hanging() }

// view returns what the transport needs to detect a dead leader.
func (e *ensemble) view() transport.View {
	r := e.n.raftNow()
	if r == nil {
		return transport.View{}
	}
	leader := e.leaderID()
	state := r.State()
	if state == raft.Leader && e.unfollowed(r) {
		leader = "" // Raft's main loop waits for the disk, or it would have stepped down
	}
	v := transport.View{Leader: leader, Candidate: state == raft.Candidate || state == raft.Leader && leader == "",
		Term: r.CurrentTerm(), Config: r.GetConfiguration().Configuration()}
	v.LastIndex, v.LastTerm = lastEntry(r)
	return v
}

// foundingIndex is the last index of a log in which no server has led yet. Servers with
// such a log don't compete for the leadership; openingElection decides.
const foundingIndex = 1

// lastEntry returns the index and term of the server's last entry, which may be in a
// snapshot only. It doesn't block.
func lastEntry(r *raft.Raft) (index, term uint64) {
	stats := r.Stats()
	number := func(key string) uint64 {
		n, err := strconv.ParseUint(stats[key], 10, 64)
		if err != nil {
			return 0 // missing or not a number
		}
		return n
	}
	index, term = number("last_log_index"), number("last_log_term")
	if snapshot := number("last_snapshot_index"); snapshot > index {
		return snapshot, number("last_snapshot_term")
	}
	return index, term
}

// leads returns the leader, for the reply to other servers. addr is empty if this server
// doesn't know the leader.
func (e *ensemble) leads() (leading bool, leader uint64, addr string) {
	e.mu.Lock()
	leading = e.lead != nil
	e.mu.Unlock()
	if leading {
		return true, e.self.ID, e.ownAddr()
	}
	v := e.view()
	for _, s := range v.Config.Servers {
		if s.ID == v.Leader && v.Leader != "" {
			return false, membership.ServerOf(s.ID), string(s.Address)
		}
	}
	return false, membership.NoServer, ""
}

func (e *ensemble) acceptProbe(conn net.Conn, from quorum.Identity) {
	respond(conn, from, func(q *question, from quorum.Identity) *answer {
		switch {
		case q.Probe != nil:
			if err := q.Probe.check(); err != nil {
				return &answer{Error: err.Error()}
			}
			e.noteAddress(q.Probe, from, conn.RemoteAddr())
			return &answer{Probe: e.formation.answer(q.Probe, from)}
		case q.Admit != nil:
			if err := e.formation.admit(q.Admit); err != nil {
				return &answer{Error: err.Error()}
			}
			return &answer{Admitted: true}
		}
		return &answer{Error: "a question that this server does not understand"}
	})
}

// acceptChange handles a reconfig from a client of another member. That member has
// authenticated the client and reports its identities, so only a member may ask.
func (e *ensemble) acceptChange(conn net.Conn, from quorum.Identity) {
	respond(conn, from, func(q *question, from quorum.Identity) *answer {
		switch {
		case !e.member(from):
			return &answer{Error: "this takes a member of the ensemble"}
		case q.Reconfig != nil:
			return &answer{Reconfig: e.drive(e.ctx, q.Reconfig)}
		}
		return &answer{Error: "a question that this server does not understand"}
	})
}

// member reports whether a server that has proved to belong to this ensemble is still in
// Raft's configuration.
func (e *ensemble) member(from quorum.Identity) bool {
	r := e.n.raftNow()
	return r != nil && from.Cluster != (quorum.ClusterID{}) && slices.ContainsFunc(r.GetConfiguration().Configuration().Servers,
		func(s raft.Server) bool { return string(s.ID) == from.ServerID })
}

// opened implements others.
func (e *ensemble) opened(begun *leadership) {
	l := &leading{incarnation: begun.incarnation, term: begun.term, since: time.Now(), silent: make(map[raft.ServerID]bool)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	e.liveness.Opened(begun.began)
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

// closed implements others.
func (e *ensemble) closed(error) {
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

// leadNow returns the open leadership of this server, or nil.
func (e *ensemble) leadNow() *leading {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lead
}

// storing implements others.
func (e *ensemble) storing(entries []*raft.Log) {
	if t := e.leadsBy(); t != nil {
		t.Storing(entries)
	}
}

// applied implements others.
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

// leadsBy returns the transport if this server leads, otherwise nil.
func (e *ensemble) leadsBy() *transport.Transport {
	if e.n.incarnation.Load() == 0 {
		return nil
	}
	return e.transportNow()
}

// status implements others.
func (e *ensemble) status(*Status, bool) {}

// settle implements others.
func (e *ensemble) settle() {
	if !e.n.halted && e.n.raftNow() != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*electionTimeout)
		if err := e.transfer(ctx); err != nil {
			e.log.Info("the lead was not handed over", "err", err)
		}
		cancel()
	}
	e.cancel()
	e.wg.Wait()
}

// silence implements others.
func (e *ensemble) silence() {
	e.cancel()
	e.n.background.Go(func() { _ = e.hub.Close() })
}

// close implements others.
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
