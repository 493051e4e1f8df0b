package raftfsm

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
	"github.com/zkgo/zkgo/raftfsm/internal/restore"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// closeLimit is how long Close waits for each step that should finish immediately.
const closeLimit = 10 * time.Second

// drainLimit is how long Close waits for entries that may never be committed.
const drainLimit = time.Second

// Node is one server of an ensemble, with its replica of the state.
type Node struct {
	cfg      Config
	log      *slog.Logger
	tree     *tree.Tree
	sessions *session.Table
	machine  *apply.Machine
	intake   *propose.Intake
	remote   *propose.RemoteRuns
	backlog  *propose.Backlog // runs queued in intake and remote
	checkers command.Checkers // of entries and runs from other servers
	mail     *mailbox
	rhythm   ensemble.Rhythm

	peers     peers
	stores    stores
	transport raft.Transport
	running   atomic.Pointer[raft.Raft]        // see raftNow
	reloading sync.Mutex                       // see reload
	proposing atomic.Pointer[propose.Proposer] // the newest, for landed
	identity  datadir.Identity
	opening   time.Duration // how long openState took

	ready     chan struct{}
	errs      chan error
	stopping  chan struct{}
	closeOnce func() error

	statusMu sync.Mutex
	status   Status

	proposed propose.SizeCounter
	numbers  numbers

	// incarnation is that of the leadership that this server believes in; 0 means none.
	incarnation atomic.Uint64
	deadlines   *session.Deadlines
	background  sync.WaitGroup

	lastSnapshot atomic.Pointer[lastSnapshot]
	replacing    *restore.Restores

	// Owned by the control goroutine.
	controlDone chan struct{}
	lead        *leadership
	forwarding  *propose.Forwarding // while this server follows
	halted      bool
	broken      bool // halted because the stores failed
	duty, retry *time.Timer
	dutyAt      time.Time // when duty fires; zero: not set
	live        []int64
}

// New returns a server that has not touched the disk or the network yet. The Node calls
// its Handler from within Start on, and the Handler may use the Node then.
func New(cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	n := newNode(cfg)
	if !cfg.standalone() {
		if n.peers, err = ensemble.New(n.environment(), n.rhythm); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// Start returns as soon as the server runs; Ready reports when it serves. It fails for
// a directory that is damaged or belongs to another server. After a failure, the caller
// must not call Start or Close.
func (n *Node) Start() error {
	if err := n.peers.Start(); err != nil {
		return errors.Join(err, n.closeStores())
	}
	n.background.Go(n.snapshotLoop)
	go n.control()
	return nil
}

func newNode(cfg Config) *Node {
	n := &Node{
		cfg: cfg, log: cfg.Logger,
		backlog: propose.NewBacklog(), mail: newMailbox(), rhythm: ensemble.Rhythm{Began: time.Now()}, checkers: command.Checkers{Membership: checkMembership},
		ready: make(chan struct{}), errs: make(chan error, 1),
		stopping: make(chan struct{}), controlDone: make(chan struct{}),
		deadlines: session.NewDeadlines(cfg.TickTime),
		duty:      stoppedTimer(), retry: stoppedTimer(),
	}
	n.peers = alone{n}
	n.closeOnce = sync.OnceValue(n.close)
	n.intake = propose.NewIntake(uint8(cfg.ID), randomUint64(), n.backlog)
	n.intake.Taken = func(commands, waiting int, since time.Time) { n.numbers.taken(commands, waiting, since) }
	n.remote = propose.NewRemoteRuns(n.backlog, &n.checkers)
	n.replacing = &restore.Restores{
		Intake: n.intake, Wall: cfg.Wall, Stopping: n.stopping,
		Level:   func() uint32 { now, _ := n.Level(); return now },
		Lacking: func(level uint32) []string { return n.peers.Lacking(level) },
	}
	n.machine = apply.New(apply.Environment{
		Newest: cfg.newest, Fleeting: cfg.Memory && cfg.standalone(),
		Handler: cfg.Handler, Intake: n.intake, Log: cfg.Logger, Numbers: &n.numbers.Counters, Hurry: n.stopping,
		Own: func(incarnation uint64) bool { return incarnation != 0 && incarnation == n.incarnation.Load() },
		Landed: func(incarnation, seq uint64) {
			if p := n.proposing.Load(); p != nil && p.Incarnation == incarnation {
				p.Land(seq)
			}
		},
		Configured: func(uint64, raft.Configuration) { n.peers.Configured() },
		Applied:    func(index uint64) { n.peers.Applied(index) },
		Post:       n.mail.applied,
		Written:    n.noteSnapshot,
		Settled:    n.replacing.Settled,
		Fail:       n.fail,
		Evidence:   cfg.keepEvidence,
	}, cfg.SnapCount, cfg.SnapBytes)
	n.tree, n.sessions = n.machine.Tree, n.machine.Sessions
	return n
}

// checkMembership returns an error for a membership that can't be decoded.
func checkMembership(state []byte) error {
	_, err := membership.ParseState(state)
	return err
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

func randomUint64() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// Propose asks the ensemble to execute c. The ensemble executes the commands of one
// goroutine in the order of its calls. Propose blocks only while too many commands are
// in flight. The Handler learns the outcome of c. An error means that nothing was
// proposed.
func (n *Node) Propose(c *Command) error {
	switch c.Kind {
	case command.KindRequest:
		if !c.Op.Transaction() {
			return fmt.Errorf("%v is no write", c.Op)
		}
	case command.KindAttach, command.KindSync:
	default:
		return fmt.Errorf("%v is not for callers to propose", c.Kind)
	}
	if c.Op == proto.OpReconfig && c.Kind == command.KindRequest {
		return n.peers.Reconfig(c)
	}
	return n.intake.Propose(c, false)
}

// Congested reports whether so many commands are queued that Propose would block now.
func (n *Node) Congested() bool { return n.intake.Congested() }

// raftNow returns the current Raft instance: nil until a member has found its ensemble,
// and a new one after a snapshot was installed.
func (n *Node) raftNow() *raft.Raft { return n.running.Load() }

// Ready returns a channel that is closed when the server has caught up for the first
// time.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Err returns a channel that delivers one error when the server has stopped for good:
// its disk failed, or its state can't be trusted. The server acknowledges nothing after
// that.
func (n *Node) Err() <-chan error { return n.errs }

// Tree returns the tree, which stays the same for the life of the Node. Callers may
// only read it, and must hold its lock.
func (n *Node) Tree() *tree.Tree { return n.tree }

// Sessions returns the table of sessions. Callers must hold the tree's lock to read it.
func (n *Node) Sessions() *session.Table { return n.sessions }

// Deadlines returns the sessions by the time at which they would expire. It is empty on
// a server that does not lead.
func (n *Node) Deadlines() map[time.Time][]int64 { return n.deadlines.ByTime() }

// Status returns the server's current status.
func (n *Node) Status() Status {
	n.statusMu.Lock()
	defer n.statusMu.Unlock()
	return n.status
}

// setStatus publishes s if it differs from the last status. Only the control goroutine
// calls it.
func (n *Node) setStatus(s Status) {
	n.statusMu.Lock()
	old := n.status
	n.status = s
	n.statusMu.Unlock()
	if old == s {
		return
	}
	if s.Serving {
		select {
		case <-n.ready:
		default:
			n.countStart()
			close(n.ready)
		}
	}
	n.cfg.Handler.StateChanged(s)
}

// Kick makes the leader check deadlines and reapable znodes now, for tests that move
// the clock by hand. When it returns, the resulting commands have been proposed.
func (n *Node) Kick() {
	done := make(chan struct{})
	n.do(func() {
		defer close(done)
		if n.lead != nil {
			n.lead.reaped = time.Time{} // however recent the last search
		}
		n.duties()
	})
	select {
	case <-done:
	case <-n.controlDone:
	}
}

// do runs f later on the control goroutine.
func (n *Node) do(f func()) { n.mail.post([]event{{kind: evDo, do: f}}) }

// fail makes the control goroutine stop the server.
func (n *Node) fail(err error) { n.mail.post([]event{{kind: evFailed, err: err}}) }

// Snapshot writes a snapshot now and truncates the log.
func (n *Node) Snapshot() error {
	r := n.raftNow()
	if r == nil {
		return ensemble.ErrNoRaft
	}
	n.reloadTrailing(r)
	err := r.Snapshot().Error()
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	return err
}

// Close stops the server and waits for that. Commands proposed before are still
// executed if possible.
func (n *Node) Close() error { return n.closeOnce() }

func (n *Node) close() error {
	n.intake.Close(ErrClosed)
	close(n.stopping)
	<-n.controlDone
	n.duty.Stop()
	n.retry.Stop()
	var errs []error
	if n.broken {
		// Raft's goroutines wait for the stores, and the stores' goroutines end when
		// the stores are closed. After any other failure Raft keeps running and would
		// panic on closed stores.
		errs = append(errs, n.closeStores())
	}
	// Raft completes the entries that it has handed to the state machine only while it
	// runs; a shutdown would leave their waiters blocked. The shutdown itself fails the
	// entries that have no quorum.
	waitWithin(drainLimit, n.background.Wait)
	if !waitFor(n.peers.Settle) {
		errs = append(errs, fmt.Errorf("the tasks of this server did not end within %v", closeLimit))
	}
	errs = append(errs, n.stopRaft())
	// If Raft did not stop, the goroutines that serve connections may be waiting for
	// the disk, too.
	if !waitFor(n.peers.Close) {
		errs = append(errs, fmt.Errorf("the connections between servers did not end within %v: their goroutines are given up", closeLimit))
	}
	errs = append(errs, n.closeStores())
	if !waitFor(n.background.Wait) {
		errs = append(errs, fmt.Errorf("an entry is still waited for after %v: its goroutine is given up", closeLimit))
	}
	return errors.Join(errs...)
}

// stopRaft shuts Raft down. It gives up after closeLimit and then closes the stores,
// because Raft's goroutines and those that serve its connections may be waiting for
// them. It closes a store that fails in the meantime at once, because the control
// goroutine no longer sees the failure.
func (n *Node) stopRaft() error {
	r := n.raftNow()
	if r == nil {
		return nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		shutDown(r, n.transport)
	}()
	timer := time.NewTimer(closeLimit)
	defer timer.Stop()
	var failed <-chan error
	if n.stores != nil {
		failed = n.stores.Failed()
	}
	var errs []error
	for {
		select {
		case <-done:
			return errors.Join(errs...)
		case err := <-failed:
			errs = append(errs, err, n.closeStores())
		case <-timer.C:
			return errors.Join(append(errs, fmt.Errorf("raft did not stop within %v: its goroutines are given up", closeLimit), n.closeStores())...)
		}
	}
}

// shutDown ends a Raft instance and waits for that. It closes the connections first:
// otherwise Raft would wait for a request to a silent server until the transport times
// out.
func shutDown(r *raft.Raft, trans raft.Transport) {
	ended := r.Shutdown()
	if c, ok := trans.(raft.WithClose); ok {
		_ = c.Close()
	}
	_ = ended.Error() // always nil
}

// waitFor runs f and waits up to closeLimit for it.
func waitFor(f func()) bool { return waitWithin(closeLimit, f) }

// waitWithin runs f and reports whether it returned within limit.
func waitWithin(limit time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

func (n *Node) closeStores() error {
	if n.stores == nil {
		return nil
	}
	return n.stores.Close()
}
