package raftfsm

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
	"github.com/zkgo/zkgo/raftfsm/internal/replica"
	"github.com/zkgo/zkgo/raftfsm/internal/restore"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// closeLimit limits the time that Close waits for each step that should finish
// immediately.
const closeLimit = 10 * time.Second

// drainLimit limits the time that Close waits for entries that may never be committed.
const drainLimit = time.Second

// Node is one server of an ensemble, with its replica of the state.
type Node struct {
	cfg      Config
	replica  *replica.Replica
	numbers  numbers
	stopping chan struct{} // closed when the server stops

	local    *propose.LocalRuns
	remote   *propose.RemoteRuns
	backlog  *propose.Backlog // runs queued in local and remote
	checkers command.Checkers // of entries and runs from other servers
	mail     *mailbox
	rhythm   ensemble.Rhythm

	peers     peers
	proposing atomic.Pointer[propose.Proposer] // the newest, told of its applied batches

	ready     chan struct{}
	errs      chan error
	closeOnce func() error

	statusMu sync.Mutex
	status   Status

	proposed propose.SizeCounter

	// incarnation identifies the leadership that this server believes in; 0 means none.
	incarnation atomic.Uint64
	deadlines   *session.Deadlines
	background  sync.WaitGroup

	replacing *restore.Restores
	forwards  forwards

	control *controller
}

// New returns a server that has not touched the disk or the network yet. The Node calls
// its Handler from within Start on, and the Handler may use the Node then.
func New(cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.Handler == nil {
		return nil, errors.New("a Handler is needed")
	}
	n := newNode(cfg)
	if !cfg.standalone() {
		if n.peers, err = ensemble.New(environment(n), n.rhythm); err != nil {
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
		return errors.Join(err, n.replica.Close())
	}
	n.background.Go(func() { n.replica.TakeSnapshots(n.stopping) })
	go n.control.run()
	return nil
}

func newNode(cfg Config) *Node {
	n := &Node{
		cfg: cfg, stopping: make(chan struct{}),
		backlog: propose.NewBacklog(), mail: newMailbox(), rhythm: ensemble.Rhythm{Began: time.Now()}, checkers: command.Checkers{Membership: checkMembership},
		ready: make(chan struct{}), errs: make(chan error, 1),
		deadlines: session.NewDeadlines(cfg.TickTime),
	}
	n.control = newController(n)
	n.peers = alone{n}
	n.closeOnce = sync.OnceValue(n.close)
	n.local = propose.NewLocalRuns(uint8(cfg.ID), randomUint64(), n.backlog)
	n.local.Taken = func(commands, waiting int, since time.Time) { n.numbers.taken(commands, waiting, since) }
	n.remote = propose.NewRemoteRuns(n.backlog, &n.checkers)
	n.replacing = &restore.Restores{
		Local: n.local, Wall: cfg.Wall, Stopping: n.stopping,
		Level:   func() uint32 { now, _ := n.Level(); return now },
		Lacking: func(level uint32) []string { return n.peers.Lacking(level) },
	}
	own := cfg.replica()
	own.Server.Joins, own.Storing = !cfg.standalone(), func(entries []*raft.Log) { n.peers.Storing(entries) }
	n.replica = replica.New(own, apply.Environment{
		Handler: cfg.Handler, Local: n.local, Hurry: n.stopping,
		Own: func(incarnation uint64) bool { return incarnation != 0 && incarnation == n.incarnation.Load() },
		BatchApplied: func(incarnation, seq uint64) {
			if p := n.proposing.Load(); p != nil && p.Incarnation == incarnation {
				p.NoteApplied(seq)
			}
		},
		Configured: func(uint64, raft.Configuration) { n.peers.Configured() },
		Applied:    func(index uint64) { n.peers.Applied(index) },
		Post:       n.mail.applied,
		Stream:     cfg.Stream,
		Settled:    n.replacing.Settled,
		Fail:       n.mail.fail,
	})
	n.numbers.Counters = &n.replica.Counters
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
			return fmt.Errorf("%v is not a write", c.Op)
		}
	case command.KindAttach, command.KindSync:
	default:
		return fmt.Errorf("%v is not for callers to propose", c.Kind)
	}
	if c.Op == proto.OpReconfig && c.Kind == command.KindRequest && !n.mirrors() {
		return n.peers.Reconfig(c)
	}
	return n.local.Propose(c, false)
}

// mirrors reports whether the state belongs to another ensemble. Then the state machine refuses
// a reconfig.
func (n *Node) mirrors() bool {
	mirror, _, _ := n.replica.Machine.Mirroring.Now()
	return mirror.Phase == mirrored.Following
}

// Congested reports whether so many commands are queued that Propose would block now.
func (n *Node) Congested() bool { return n.local.Congested() }

// Ready returns a channel that is closed when the server has caught up for the first
// time.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Err returns a channel that delivers one error when the server has stopped permanently:
// its disk failed, or its state can't be trusted. The server acknowledges nothing after
// that.
func (n *Node) Err() <-chan error { return n.errs }

// Tree returns the tree. It is the same tree for the life of the Node. Callers may only
// read it, and must hold its lock.
func (n *Node) Tree() *tree.Tree { return n.replica.Machine.Tree }

// Sessions returns the table of sessions. Callers must hold the tree's lock to read it.
func (n *Node) Sessions() *session.Table { return n.replica.Machine.Sessions }

// Snapshot writes a snapshot now and truncates the log.
func (n *Node) Snapshot() error { return n.replica.Snapshot() }

// LastSnapshot returns the zxid and the time of the newest snapshot that this server
// has written or started from. ok is false when there is none.
func (n *Node) LastSnapshot() (zxid int64, at time.Time, ok bool) { return n.replica.LastSnapshot() }

// LastSnapshotBytes returns the size of that snapshot in bytes, or 0 when there is none.
func (n *Node) LastSnapshotBytes() int64 { return n.replica.LastSnapshotBytes() }

// Deadlines returns the sessions by the time at which they would expire. It is empty on
// a server that does not lead.
func (n *Node) Deadlines() map[time.Time][]int64 { return n.deadlines.ByTime() }

// Status returns the server's current status.
func (n *Node) Status() Status {
	n.statusMu.Lock()
	defer n.statusMu.Unlock()
	return n.status
}

// publish makes s the status if it differs from the previous status.
func (c *controller) publish(s Status) {
	n := c.n
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
			n.replica.CountStart()
			close(n.ready)
		}
	}
	n.cfg.Handler.StateChanged(s)
}

// Kick makes the leader check deadlines and reapable znodes now, for tests that move
// the clock by hand. When it returns, the resulting commands have been proposed.
func (n *Node) Kick() {
	done := make(chan struct{})
	n.mail.do(func() {
		defer close(done)
		if n.control.lead != nil {
			n.control.lead.reaped = time.Time{} // however recent the last search
		}
		n.control.duties()
	})
	select {
	case <-done:
	case <-n.control.done:
	}
}

// Close stops the server and waits for that. Commands proposed before are still
// executed if possible.
func (n *Node) Close() error { return n.closeOnce() }

func (n *Node) close() error {
	n.local.Close(ErrClosed)
	close(n.stopping)
	<-n.control.done
	n.control.duty.Stop()
	n.control.retry.Stop()
	var errs []error
	if n.control.broken {
		// Raft's goroutines wait for the stores, and the stores' goroutines end when
		// the stores are closed. After any other failure Raft keeps running and would
		// panic on closed stores.
		errs = append(errs, n.replica.Close())
	}
	// Raft completes the entries that it has handed to the state machine only while it
	// runs; a shutdown would leave their waiters blocked. The shutdown itself fails the
	// entries that have no quorum.
	waitWithin(drainLimit, n.background.Wait)
	if !waitFor(n.peers.Settle) {
		errs = append(errs, fmt.Errorf("the tasks of this server did not end within %v", closeLimit))
	}
	errs = append(errs, n.replica.Stop(closeLimit))
	// If Raft did not stop, the goroutines that serve connections may be waiting for
	// the disk, too.
	if !waitFor(n.peers.Close) {
		errs = append(errs, fmt.Errorf("the connections between servers did not end within %v: their goroutines are given up", closeLimit))
	}
	errs = append(errs, n.replica.Close())
	if !waitFor(n.background.Wait) {
		errs = append(errs, fmt.Errorf("an entry has not completed within %v: its goroutine is abandoned", closeLimit))
	}
	return errors.Join(errs...)
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
