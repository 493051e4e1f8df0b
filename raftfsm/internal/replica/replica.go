package raftfsm

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// replica is a server's copy of the state: the stores in its directories, the Raft instance on
// them, and the state machine. It knows no other server and no client.
type replica struct {
	cfg      Config
	log      *slog.Logger
	machine  *apply.Machine
	tree     *tree.Tree
	sessions *session.Table
	identity datadir.Identity
	numbers  numbers
	stopping chan struct{} // closed when the server stops

	stores       stores
	transport    raft.Transport
	running      atomic.Pointer[raft.Raft] // see raftNow
	reloading    sync.Mutex                // see reload
	opening      time.Duration             // how long openState took
	lastSnapshot atomic.Pointer[lastSnapshot]

	joins   bool                      // it is about to run as a member of an ensemble
	storing func(entries []*raft.Log) // told the entries about to be stored
}

// raftNow returns the current Raft instance: nil until a member has found its ensemble,
// and a new one after a snapshot was installed.
func (n *replica) raftNow() *raft.Raft { return n.running.Load() }

// openState opens the stores, finds out which server they belong to, and loads the
// newest snapshot.
func (n *replica) openState() error {
	begin := time.Now()
	defer func() { n.opening = time.Since(begin) }()
	if !n.cfg.Memory {
		if err := n.cfg.dirs().Open(n.log); err != nil {
			return err
		}
	}
	if err := n.openStores(); err != nil {
		return err
	}
	if err := n.loadIdentity(); err != nil {
		return err
	}
	if err := n.restoreNewest(); err != nil {
		return err
	}
	if c := n.machine.Cluster; c != (command.ClusterID{}) && c != n.identity.ClusterID() {
		return fmt.Errorf("the snapshot in %s belongs to cluster %x, %s to %s", n.cfg.SnapDir, c, n.cfg.LogDir, n.identity.Cluster)
	}
	n.machine.Cluster = n.identity.ClusterID()
	return nil
}

// loadIdentity determines which server's state this is.
func (n *replica) loadIdentity() (err error) {
	switch {
	case !n.cfg.Memory:
		server := n.cfg.server()
		server.Joins = n.joins
		n.identity, err = n.cfg.dirs().Identify(server, n.stores, n.log)
	case n.cfg.standalone():
		n.identity = datadir.NewIdentity(n.cfg.ID)
	}
	return err
}

// startRaft starts Raft on the opened state. If the state has no configuration yet,
// bootstrap becomes the first one; an empty bootstrap leaves that to a leader.
func (n *replica) startRaft(bootstrap raft.Configuration) error {
	conf := n.raftConfig(n.identity.RaftID)
	logs, stable, snaps := n.stores.Logs(), n.stores.Stable(), n.stores.Snapshots()
	if len(bootstrap.Servers) > 0 {
		err := raft.BootstrapCluster(conf, logs, stable, snaps, n.transport, bootstrap)
		if errors.Is(err, raft.ErrCantBootstrap) {
			err = n.finishBootstrap(bootstrap)
		}
		if err != nil {
			return fmt.Errorf("first configuration: %w", err)
		}
	}
	if err := n.machine.Align(snaps, logs); err != nil {
		return err
	}
	type outcome struct {
		raft *raft.Raft
		err  error
	}
	started := make(chan outcome, 1)
	go func() {
		// An unreadable entry blocks NewRaft until the stores are closed, which ends
		// this goroutine. The caller that closes them has received the failure below.
		o := outcome{err: errUnreadable}
		defer func() { started <- o }()
		counted := countedLogs{LogStore: logs, numbers: &n.numbers, follows: n.follows}
		o.raft, o.err = raft.NewRaft(conf, n.machine, counted, stable, snaps, n.transport)
	}()
	select {
	case o := <-started:
		if o.err == nil {
			n.running.Store(o.raft)
		}
		return o.err
	case err := <-n.stores.Failed():
		return err
	}
}

// errUnreadable is why Raft did not start. The cause was reported before.
var errUnreadable = errors.New("the log could not be read when Raft started")

// bootstrapTerm is the term that Raft gives to the first configuration. The first
// election raises it.
const bootstrapTerm = 1

// finishBootstrap writes the first configuration of a server that lost power after Raft
// had saved that configuration's term but not the configuration. There was no election
// yet, so the server has promised nothing else.
func (n *replica) finishBootstrap(bootstrap raft.Configuration) error {
	term, err := n.stores.Stable().GetUint64([]byte("CurrentTerm"))
	if err != nil || term != bootstrapTerm {
		return err
	}
	last, err := n.stores.Logs().LastIndex()
	if err != nil || last > 0 {
		return err
	}
	snaps, err := n.stores.Snapshots().List()
	if err != nil || len(snaps) > 0 {
		return err
	}
	return n.stores.Logs().StoreLog(&raft.Log{
		Index: 1, Term: bootstrapTerm, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(bootstrap),
	})
}

// follows reports whether this server's log is a copy of a leader's.
func (n *replica) follows() bool {
	r := n.raftNow()
	return r != nil && r.State() == raft.Follower
}

const (
	// maxAppendEntries bounds one message to a follower. An entry has up to 256 KiB, so
	// one message can be sent within any timeout.
	maxAppendEntries = 32
	// never disables a Raft trigger. This package takes snapshots itself.
	never = 1 << 62
)

// peerTiming returns the timeouts between the servers of the ensemble.
func (n *replica) peerTiming() ensemble.Timing {
	return (&ensemble.Config{TickTime: n.cfg.TickTime, SyncLimit: n.cfg.SyncLimit}).Timing()
}

// raftConfig returns the configuration of the Raft library.
func (n *replica) raftConfig(id raft.ServerID) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = id
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = ensemble.ElectionTimeout, ensemble.ElectionTimeout, ensemble.ElectionTimeout
	if !n.cfg.standalone() {
		// See timing: Raft's own timers start no election.
		c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = ensemble.Never, ensemble.Never, n.peerTiming().Lease
	}
	c.CommitTimeout = time.Second // a fallback: see transport.Transport.Committed
	c.MaxAppendEntries = maxAppendEntries
	// A buffer in front of Raft would only hide entries from a shutdown: Raft never
	// answers the entries that are still in it. The batches are full without it.
	c.BatchApplyCh = false
	c.ShutdownOnRemove = false
	c.NoLegacyTelemetry = true
	c.SnapshotThreshold = never
	c.SnapshotInterval = time.Hour
	c.TrailingLogs = minTrailing
	c.NoSnapshotRestoreOnStart = true // see restoreNewest
	c.Logger = raftLogger(n.log)
	return c
}

// stopRaft shuts Raft down. It gives up after closeLimit and then closes the stores,
// because Raft's goroutines and those that serve its connections may be waiting for
// them. It closes a store that fails in the meantime at once, because the control
// goroutine no longer sees the failure.
func (n *replica) stopRaft() error {
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

func (n *replica) closeStores() error {
	if n.stores == nil {
		return nil
	}
	return n.stores.Close()
}
