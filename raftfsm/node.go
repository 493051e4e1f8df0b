package raftfsm

import (
	"context"
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
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// ErrClosed is what everything answers after Close.
var ErrClosed = errors.New("the server is closed")

// closeLimit is how long Close waits for each thing that should take no time.
const closeLimit = 10 * time.Second

// drainLimit is how long Close waits for entries that may never be committed.
const drainLimit = time.Second

// Node is one server's replica of the state and its voice in the ensemble.
type Node struct {
	cfg      Config
	log      *slog.Logger
	tree     *tree.Tree
	sessions *session.Table
	machine  *machine
	intake   *intake
	remote   *remoteRuns
	backlog  *backlog // what waits in intake and remote
	mail     *mailbox

	others    others
	stores    stores
	transport raft.Transport
	running   atomic.Pointer[raft.Raft] // see raftNow
	reloading sync.Mutex                // see reload
	gathers   atomic.Bool
	identity  identity
	opening   time.Duration // how long openState took
	restored  uint64        // index of the snapshot that the machine began with, or was given

	ready     chan struct{}
	errs      chan error
	stopping  chan struct{}
	closeOnce func() error

	statusMu sync.Mutex
	status   Status

	proposed proposalSizes

	// incarnation of the leadership that this server believes in; 0 none.
	incarnation atomic.Uint64
	deadlines   *deadlines
	background  sync.WaitGroup

	lastSnapshot atomic.Pointer[lastSnapshot]
	replacing    replacing

	// Owned by the control goroutine.
	controlDone chan struct{}
	lead        *leadership
	forwarding  *forwarding // while this server follows
	halted      bool
	broken      bool // halted by the stores
	duty, retry *time.Timer
	dutyAt      time.Time // when duty fires; zero: it is not set
	live        []int64
}

// Start starts a server: New and then its Start, for who has no handler that needs
// the Node.
func Start(cfg Config) (*Node, error) {
	n, err := New(cfg)
	if err != nil {
		return nil, err
	}
	if err := n.Start(); err != nil {
		return nil, err
	}
	return n, nil
}

// New returns a server that has touched no disk and no network yet. Its Handler is
// called from within Start on, and may use the Node then.
func New(cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	n := newNode(cfg)
	if cfg.standalone() {
		n.others = alone{n}
	} else if n.others, err = newEnsemble(n); err != nil {
		return nil, err
	}
	return n, nil
}

// Start returns as soon as the server runs; Ready says when it serves. It fails
// for a directory that is damaged or belongs to another server, and must not be
// called again then, nor Close.
func (n *Node) Start() error {
	if err := n.others.start(); err != nil {
		return errors.Join(err, n.closeStores())
	}
	n.background.Go(n.snapshotLoop)
	go n.control()
	return nil
}

func newNode(cfg Config) *Node {
	n := &Node{
		cfg: cfg, log: cfg.Logger, tree: tree.New(), sessions: session.NewTable(),
		backlog: newBacklog(), mail: newMailbox(),
		ready: make(chan struct{}), errs: make(chan error, 1),
		stopping: make(chan struct{}), controlDone: make(chan struct{}),
		deadlines: newDeadlines(cfg.TickTime, cfg.Now, time.Now),
		duty:      stoppedTimer(), retry: stoppedTimer(),
	}
	n.closeOnce = sync.OnceValue(n.close)
	n.intake = newIntake(uint8(cfg.ID), randomUint64(), n.backlog)
	n.intake.taken = func(commands, waiting int, since time.Time) { n.Numbers().taken(commands, waiting, since) }
	n.remote = newRemoteRuns(n.backlog)
	n.machine = &machine{
		tree: n.tree, sessions: n.sessions, handler: cfg.Handler, intake: n.intake, log: cfg.Logger,
		newest:     cfg.newest,
		fleeting:   cfg.Memory && cfg.standalone(),
		own:        func(incarnation uint64) bool { return incarnation != 0 && incarnation == n.incarnation.Load() },
		post:       n.mail.post,
		configured: func(index uint64, conf raft.Configuration) { n.others.configured(index, conf) },
		applied:    func(index uint64) { n.others.applied(index) },
		written:    n.noteSnapshot,
		settled:    n.replacing.settled,
		hurry:      n.stopping,
		evidence:   cfg.keepEvidence,
		fail:       func(err error) { n.mail.post([]event{{kind: evFailed, err: err}}) },
	}
	n.machine.snapCounter = snapCounter{maxOps: cfg.SnapCount, maxBytes: cfg.SnapBytes, trigger: make(chan struct{}, 1)}
	n.machine.snapCounter.reset()
	return n
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

// Propose asks the ensemble to execute c. Commands of one goroutine are
// executed in the order of its calls. It blocks only while very much is on its
// way already. What becomes of c is told to the Handler; an error says that
// nothing was proposed.
func (n *Node) Propose(c *Command) error {
	switch c.Kind {
	case KindRequest:
		if c.Op.Kind() != proto.Write {
			return fmt.Errorf("%v is no write", c.Op)
		}
	case KindAttach, KindSync:
	default:
		return fmt.Errorf("%v is not for callers to propose", c.Kind)
	}
	if e, ok := n.others.(*ensemble); ok && c.Op == proto.OpReconfig && c.Kind == KindRequest {
		return e.reconfig(c)
	}
	return n.intake.propose(c, false)
}

// Gather has a server without an ensemble wait some 0.2 ms behind an entry of several
// commands for as many more, as one with an ensemble always does, or not any more: who
// has been answered and who was told of it, as of a lock, then share the next entry.
// It stops by itself to wait for clients that do not come back. Where both processors
// of a machine are busy with server and clients it costs more than it is worth, which
// is why it is for the caller to say.
func (n *Node) Gather(on bool) { n.gathers.Store(on) }

// Congested reports whether so much waits that Propose would block now.
func (n *Node) Congested() bool { return n.intake.congested() }

// errNoRaft answers what needs the log before this server has one.
var errNoRaft = errors.New("the server has not joined its ensemble yet")

// raftNow returns the Raft instance of the moment: nil until a member has found
// its ensemble, another one after a snapshot was installed.
func (n *Node) raftNow() *raft.Raft { return n.running.Load() }

// Ready is closed when the server has caught up for the first time.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Err gets one error when the server has stopped for good: its disk failed, or
// its state cannot be trusted. Nothing is acknowledged from then on.
func (n *Node) Err() <-chan error { return n.errs }

// Tree returns the tree, which is the same for the life of the Node. Callers
// only read, with its lock held.
func (n *Node) Tree() *tree.Tree { return n.tree }

// Sessions returns the table of sessions. It is read with the tree's lock held.
func (n *Node) Sessions() *session.Table { return n.sessions }

// Deadlines returns the sessions by the time at which they would expire; empty
// on a server that does not lead.
func (n *Node) Deadlines() map[time.Time][]int64 { return n.deadlines.snapshot() }

// Status returns what the server is at the moment.
func (n *Node) Status() Status {
	n.statusMu.Lock()
	defer n.statusMu.Unlock()
	return n.status
}

// setStatus publishes s if it is news. Only the control goroutine calls it.
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

// Kick makes the leader look at deadlines and reapable znodes now, for tests
// that move the clock by hand. When it returns, what follows has been proposed.
func (n *Node) Kick() {
	done := make(chan struct{})
	n.do(func() {
		defer close(done)
		if n.lead != nil {
			n.lead.reaped = time.Time{} // however short the time since the last search
		}
		n.duties()
	})
	select {
	case <-done:
	case <-n.controlDone:
	}
}

// do runs f on the control goroutine, some time later.
func (n *Node) do(f func()) { n.mail.post([]event{{kind: evDo, do: f}}) }

// Snapshot writes a snapshot now and shortens the log.
func (n *Node) Snapshot() error {
	r := n.raftNow()
	if r == nil {
		return errNoRaft
	}
	n.reloadTrailing(r)
	err := r.Snapshot().Error()
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	return err
}

// Transfer hands leadership to another server, as before a planned stop. It
// does nothing on a server that does not lead or stands alone.
func (n *Node) Transfer(ctx context.Context) error { return n.others.transfer(ctx) }

// Membership returns the text of /zookeeper/config as the log has it, whatever
// a super user may have written into the znode; nil on a server that stands
// alone, and before the first leader.
func (n *Node) Membership() []byte {
	n.tree.RLock()
	defer n.tree.RUnlock()
	return configText(n.machine.config)
}

// Voters returns the servers that have a vote, by this server's knowledge. One
// that has just joined gets its vote when it has caught up.
func (n *Node) Voters() []uint64 {
	r := n.raftNow()
	if r == nil {
		return nil
	}
	var ids []uint64
	for _, s := range r.GetConfiguration().Configuration().Servers {
		if s.Suffrage == raft.Voter {
			ids = append(ids, serverOf(s.ID))
		}
	}
	return ids
}

// Confirmed returns the newest time at which a leader that could commit is known
// to have heard of this server's sessions. A client must not be answered when
// that is so long ago that its session may have been expired.
func (n *Node) Confirmed() time.Time { return n.others.confirmed() }

// Fresh returns a time such that this server has applied everything that any
// server had acknowledged by then: a read that it answers now is no older. It is
// never after Confirmed. Safe for concurrent use.
func (n *Node) Fresh() time.Time { return n.others.fresh() }

// Electing reports whether this server hears nothing from a leader, and a quorum of
// servers has answered it so lately that there may be another leader soon. Safe for
// concurrent use.
func (n *Node) Electing() bool { return n.others.electing() }

// Close stops the server and waits until it has: what was proposed before is
// still executed if that is possible.
func (n *Node) Close() error { return n.closeOnce() }

func (n *Node) close() error {
	n.intake.close(ErrClosed)
	close(n.stopping)
	<-n.controlDone
	n.duty.Stop()
	n.retry.Stop()
	var errs []error
	if n.broken {
		// Raft's goroutines wait for the stores, and the stores for their Close.
		// After any other failure Raft goes on, and would panic on closed stores.
		errs = append(errs, n.closeStores())
	}
	// What Raft has handed to the state machine is answered only while Raft
	// runs; a shutdown leaves who waits for it waiting. Entries that find no
	// quorum are answered by the shutdown itself.
	waitWithin(drainLimit, n.background.Wait)
	if !waitFor(n.others.settle) {
		errs = append(errs, fmt.Errorf("the tasks of this server did not end within %v", closeLimit))
	}
	errs = append(errs, n.stopRaft())
	// Where Raft was given up, whatever serves a connection may wait for the disk as well.
	if !waitFor(n.others.close) {
		errs = append(errs, fmt.Errorf("the connections between servers did not end within %v: their goroutines are given up", closeLimit))
	}
	errs = append(errs, n.closeStores())
	if !waitFor(n.background.Wait) {
		errs = append(errs, fmt.Errorf("an entry is still waited for after %v: its goroutine is given up", closeLimit))
	}
	return errors.Join(errs...)
}

// stopRaft shuts Raft down. It gives up after closeLimit, and then closes the stores:
// Raft's goroutines, and those that serve connections for it, may wait for them. A store
// that fails in the meantime, which the control goroutine no longer sees, is closed at once.
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

// shutDown ends a Raft instance and waits until it has. Its connections end first:
// a request to a server that does not answer would be waited for, as long as the
// transport has patience.
func shutDown(r *raft.Raft, trans raft.Transport) {
	ended := r.Shutdown()
	if c, ok := trans.(raft.WithClose); ok {
		_ = c.Close()
	}
	_ = ended.Error() // always nil
}

// waitFor runs f and waits for it up to closeLimit.
func waitFor(f func()) bool { return waitWithin(closeLimit, f) }

// waitWithin runs f and reports whether it returned in time.
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
