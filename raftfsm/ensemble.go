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
)

// ensemble is the others of a member: everything that a server knows of, hears
// from and tells the rest of its ensemble.
//
//   - formation.go, ballot.go: how a server finds its place, before it has any
//     Raft state
//   - forward.go: commands to the leader
//   - liveness.go: which sessions live, and what a follower may rely on
//   - members.go, reconcile.go, reconfig.go: who belongs to the ensemble
//
// Lock order: nothing is called with mu held that waits or takes another lock.
type ensemble struct {
	n         *Node
	self      Member // as its configuration file lists it
	log       *slog.Logger
	hub       *quorum.Hub
	formation *formation
	joins     joins
	reconfigs reconfigs

	ctx    context.Context // ends with settle
	cancel context.CancelFunc
	wg     sync.WaitGroup

	appliedIndex atomic.Uint64
	catchUp      atomic.Pointer[catchUp] // nil: nothing to wait for
	following    atomic.Uint64           // incarnation published as followed, 0 none
	installed    chan struct{}           // capacity 1: a snapshot was installed
	gone         atomic.Pointer[leadOf]  // the leader that was given up, as long as Raft names it; nil: none
	progress     progress
	inquiries    *inquiries
	checkers     entryCheckers

	// Of the reconcile loop.
	listening   string    // the address of the quorum port
	listenTried time.Time // when another was last tried
	asking      string    // which server was asked for in vain, at which address,
	askedAt     time.Time // and when

	mu            sync.Mutex
	transport     *quorum.Transport // of the Raft instance of the moment
	lead          *leading          // while this server's leadership is open
	target        target            // whom the log says to follow
	unnamed       bool              // the log says so in a snapshot, without the server: Raft says which
	attending     context.CancelFunc
	unattended    time.Time          // when the last stream of commands to a leader ended
	contact       time.Time          // newest confirmed contact with a leader
	freshness     freshness          // of the state that is applied
	unacked       map[int64]struct{} // sessions reported since a leader acknowledged one
	touchedAt     time.Time          // when sessions were last put there by a leader
	reporting     map[int64]int      // sessions that wait in a reconfig
	written       *membership        // what the configuration file was told to list since the start; nil: Config.Members
	mismatch      string             // the reconfig that would make the membership what the file lists,
	told          string             // as the operator knows it
	mismatchSince time.Time
	listenWant    string // the quorum address that a reconfig has set for this server,
	listenErr     error  // and why it cannot listen there
}

// leading is one open leadership; ctx ends with it.
type leading struct {
	incarnation uint64
	term        uint64 // contacts of another one prove nothing about this
	since       time.Time
	ctx         context.Context
	cancel      context.CancelFunc
	silent      map[raft.ServerID]bool // used by the reconcile loop
	asked       time.Time              // when it last asked for behaviour levels,
	askedFiles  time.Time              // and for lists of servers
	changing    string                 // the membership that a proposed change replaces; the ensemble's mu
	changingAt  time.Time              // and when it was proposed
}

// target is a leadership of another server, none when incarnation is 0.
type target struct {
	server      uint64 // noServer until Raft says who leads
	incarnation uint64
}

var _ others = (*ensemble)(nil)

// newEnsemble returns what n will be a member of.
func newEnsemble(n *Node) (*ensemble, error) {
	i := slices.IndexFunc(n.cfg.Members, func(m Member) bool { return m.ID == n.cfg.ID })
	if i < 0 {
		return nil, fmt.Errorf("server %d is not on the list of servers in its configuration", n.cfg.ID)
	}
	e := &ensemble{n: n, self: n.cfg.Members[i], log: n.log, reporting: make(map[int64]int), unacked: make(map[int64]struct{}),
		installed: make(chan struct{}, 1), inquiries: newInquiries()}
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
	e.listening = e.listenAddr(e.self.QuorumAddr)
	if e.hub, err = quorum.Listen(e.network(), e.listening, e.identity(), e.security(), e.log); err != nil {
		return err
	}
	e.warnIfOpen()
	e.formation = &formation{self: e.self, members: n.cfg.Members, clientPort: n.cfg.ClientPort, level: n.cfg.newest, hub: e.hub, store: store, settle: e.become,
		log: e.log, leads: e.leads, join: e.join, phase: phaseEmpty,
		table: make(map[uint64]sighting), changed: make(chan struct{}, 1)}
	if store.seat.Bound != nil {
		e.formation.phase = phaseBound
	}
	if n.identity.RaftID != "" {
		// It has its place, whatever it takes until its Raft runs: to be taken for
		// an empty one would let the others found an ensemble without its data.
		e.formation.fixed = true
		e.formation.member(n.identity.RaftID)
	}
	e.hub.Handle(quorum.Probe, e.acceptProbe)
	e.hub.Handle(quorum.Change, e.acceptChange)
	e.hub.Handle(quorum.Forward, e.acceptForward)
	e.hub.Handle(quorum.Liveness, e.acceptLiveness)
	e.wg.Go(e.run)
	e.wg.Go(e.waitingLoop)
	return nil
}

// listenAddr is where a server listens whose quorum address is addr.
func (e *ensemble) listenAddr(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	switch {
	case err != nil:
	case e.n.cfg.ListenAll:
		return ":" + port
	case e.n.cfg.ListenHost != "":
		return net.JoinHostPort(e.n.cfg.ListenHost, port)
	}
	return addr
}

// identity is what this server says in handshakes.
func (e *ensemble) identity() quorum.Identity {
	id := e.n.identity
	out := quorum.Identity{ServerID: string(id.RaftID), Cluster: quorum.ClusterID(id.clusterID()),
		List: listHash(e.n.cfg.Members), Nonce: e.n.intake.nonce}
	if out.ServerID == "" {
		out.ServerID = string(founderID(e.self.ID))
	}
	return out
}

// become gives this server its identity.
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

// run brings this server into its ensemble and keeps it there.
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

// place finds out as who this server starts its Raft, and with which first
// configuration: none when it has Raft state or a leader will bring it.
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
	// A founder that was stopped before it wrote its first entry does it now.
	if bound != nil && bound.Cluster == quorum.ClusterID(e.n.identity.clusterID()) && e.n.identity.RaftID == founderID(e.self.ID) {
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
	trans := quorum.NewTransport(quorum.TransportConfig{
		Hub: e.hub, ID: e.n.identity.RaftID, Addr: e.self.QuorumAddr, Logger: raftLogger(e.log), Stall: e.stallLimit(), HeartbeatStall: e.heartbeatStall(),
		Standing: e.standing, TermOf: e.termOf, CheckEntry: e.checkEntry, CheckSnapshot: e.checkSnapshot, MaxEntry: maxForwarded + maxBatchBytes,
		Applied: e.handedOver, FirstIndex: e.firstIndex, Hanging: e.hanging, View: e.view, Elsewhere: e.addresses,
		Acknowledged: func(id raft.ServerID, took time.Duration) { e.n.Numbers().Acks.observe(serverOf(id), took) },
		Joined:       func() { e.n.Numbers().Diffs.Add(1) }, SendingSnapshot: e.n.Numbers().sendingSnapshot,
		Installing: func() { e.n.machine.freezeNext.Store(true) },
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
	e.n.do(func() {}) // the control goroutine listens to another instance now
	return nil
}

// recycle replaces the Raft instance after it installed a snapshot: it still
// believes that its log ends where it did before, and may refuse the leader's
// entries for ever.
func (e *ensemble) recycle() error {
	e.log.Info("starting Raft anew after a snapshot was installed")
	shutDown(e.n.raftNow(), e.n.transport)
	if e.ctx.Err() != nil {
		return e.ctx.Err()
	}
	return e.startRaft(raft.Configuration{})
}

// openingElection makes the founder with the highest id the first leader, as
// in ZooKeeper, without waiting for an election timeout; so does a server that
// is the only voter. One kick only: two at once would split the votes.
func (e *ensemble) openingElection(bootstrap raft.Configuration, first *founding) {
	servers := e.n.raftNow().GetConfiguration().Configuration().Servers
	voters := 0
	for _, s := range servers {
		if s.Suffrage == raft.Voter {
			voters++
		}
	}
	self := slices.ContainsFunc(servers, func(s raft.Server) bool {
		return s.ID == e.n.identity.RaftID && s.Suffrage == raft.Voter
	})
	switch {
	case self && voters == 1:
	case first != nil && first.first(e.self.ID):
		if !e.awaitFounders(first) {
			return
		}
	default:
		return
	}
	e.transportNow().Kick()
}

// awaitFounders waits until the founders run Raft, all of them or, after a
// while, a majority.
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

func (e *ensemble) transportNow() *quorum.Transport {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.transport
}

// handedOver is the newest index that Raft gave to the state machine.
func (e *ensemble) handedOver() uint64 {
	if r := e.n.raftNow(); r != nil {
		return r.AppliedIndex()
	}
	return 0
}

// firstIndex is the oldest entry in the log.
func (e *ensemble) firstIndex() uint64 {
	first, err := e.n.stores.Logs().FirstIndex()
	if err != nil {
		return 0
	}
	return first
}

// hanging says for how long the log's disk has kept a write waiting.
func (e *ensemble) hanging() time.Duration {
	if s, ok := e.n.stores.(interface{ Hanging() time.Duration }); ok {
		return s.Hanging()
	}
	return 0
}

// view is what the transport needs to look for a dead leader.
func (e *ensemble) view() quorum.View {
	r := e.n.raftNow()
	if r == nil {
		return quorum.View{}
	}
	leader := e.leaderID()
	state := r.State()
	if state == raft.Leader && e.unfollowed(r) {
		leader = "" // its main loop waits for the disk, or it would have stepped down
	}
	v := quorum.View{Leader: leader, Candidate: state == raft.Candidate || state == raft.Leader && leader == "",
		Term: r.CurrentTerm(), Config: r.GetConfiguration().Configuration()}
	v.LastIndex, v.LastTerm = lastEntry(r)
	return v
}

// foundingIndex is the only entry of a log in which nobody has led yet: who leads
// first is not for the servers to race for, see openingElection.
const foundingIndex = 1

// lastEntry returns index and term of the last entry that a server has, which
// only a snapshot may hold. It waits for nothing.
func lastEntry(r *raft.Raft) (index, term uint64) {
	stats := r.Stats()
	number := func(key string) uint64 {
		n, err := strconv.ParseUint(stats[key], 10, 64)
		if err != nil {
			return 0 // Raft does not say: as if there were nothing
		}
		return n
	}
	index, term = number("last_log_index"), number("last_log_term")
	if snapshot := number("last_snapshot_index"); snapshot > index {
		return snapshot, number("last_snapshot_term")
	}
	return index, term
}

// leads says who leads, for other servers to be told; addr is empty when this
// server does not know.
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
			return false, serverOf(s.ID), string(s.Address)
		}
	}
	return false, noServer, ""
}

func (e *ensemble) acceptProbe(conn net.Conn, from quorum.Identity) {
	respond(conn, from, func(q *question, from quorum.Identity) *answer {
		switch {
		case q.Probe != nil:
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

// acceptChange takes the reconfig of a client of another member. That member has
// authenticated the client and says who it is, so only a member may ask.
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

// member says whether a server that has proved to belong to this ensemble is in
// Raft's configuration still.
func (e *ensemble) member(from quorum.Identity) bool {
	r := e.n.raftNow()
	return r != nil && from.Cluster != (quorum.ClusterID{}) && slices.ContainsFunc(r.GetConfiguration().Configuration().Servers,
		func(s raft.Server) bool { return string(s.ID) == from.ServerID })
}

// opened implements others.
func (e *ensemble) opened(begun *leadership) {
	l := &leading{incarnation: begun.incarnation, term: begun.term, since: time.Now(), silent: make(map[raft.ServerID]bool)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	e.mu.Lock()
	e.lead = l
	e.target, e.unnamed = target{}, false
	e.freshness.startAt(begun.began)
	if e.attending != nil {
		e.attending()
	}
	e.mu.Unlock()
	giveUp(e.inquiries.take()) // nobody will carry them to another leader
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

// leadNow returns the open leadership of this server, nil without.
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

// leadsBy returns the transport of a server that leads, nil on another one.
func (e *ensemble) leadsBy() *quorum.Transport {
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
