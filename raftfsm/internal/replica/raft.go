package replica

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
)

// Start starts Raft on the opened state. If the state has no configuration yet, bootstrap
// becomes its first configuration; an empty bootstrap leaves that to a leader.
func (r *Replica) Start(transport raft.Transport, bootstrap raft.Configuration) error {
	r.transport = transport
	conf := r.raftConfig(r.Identity.RaftID)
	logs, stable, snaps := r.stores.Logs(), r.stores.Stable(), r.stores.Snapshots()
	if len(bootstrap.Servers) > 0 {
		err := raft.BootstrapCluster(conf, logs, stable, snaps, r.transport, bootstrap)
		if errors.Is(err, raft.ErrCantBootstrap) {
			err = r.finishBootstrap(bootstrap)
		}
		if err != nil {
			return fmt.Errorf("first configuration: %w", err)
		}
	}
	if err := r.Machine.Align(snaps, logs); err != nil {
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
		counted := countedLogs{LogStore: logs, counters: &r.Counters, follows: r.follows}
		o.raft, o.err = raft.NewRaft(conf, r.Machine, counted, stable, snaps, r.transport)
	}()
	select {
	case o := <-started:
		if o.err == nil {
			r.running.Store(o.raft)
		}
		return o.err
	case err := <-r.stores.Failed():
		return err
	}
}

// errUnreadable is returned if Raft did not start. The cause was reported before.
var errUnreadable = errors.New("the log could not be read when Raft started")

// bootstrapTerm is the term that Raft gives to the first configuration. The first
// election raises it.
const bootstrapTerm = 1

// finishBootstrap writes the first configuration of a server that lost power after Raft
// had saved that configuration's term but not the configuration. There was no election
// yet, so the server has promised nothing else.
func (r *Replica) finishBootstrap(bootstrap raft.Configuration) error {
	term, err := r.stores.Stable().GetUint64([]byte("CurrentTerm"))
	if err != nil || term != bootstrapTerm {
		return err
	}
	last, err := r.stores.Logs().LastIndex()
	if err != nil || last > 0 {
		return err
	}
	snaps, err := r.stores.Snapshots().List()
	if err != nil || len(snaps) > 0 {
		return err
	}
	return r.stores.Logs().StoreLog(&raft.Log{
		Index: 1, Term: bootstrapTerm, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(bootstrap),
	})
}

// follows reports whether this server's log is a copy of a leader's.
func (r *Replica) follows() bool {
	now := r.Raft()
	return now != nil && now.State() == raft.Follower
}

// StartAlone opens the state of a server that is the only voter, starts Raft on it and makes
// the server the leader.
func (r *Replica) StartAlone() error {
	addr, transport := raft.NewInmemTransport(datadir.StandaloneAddr)
	transport.Connect(addr, transport)
	if err := r.Open(); err != nil {
		return err
	}
	only := raft.Server{Suffrage: raft.Voter, ID: r.Identity.RaftID, Address: addr}
	if err := r.Start(transport, raft.Configuration{Servers: []raft.Server{only}}); err != nil {
		return err
	}
	return r.leadAlone()
}

// leadAlone makes this server the leader immediately instead of after an election
// timeout. That bypasses all safeguards of an election, so it first checks that there
// is no other voter. Otherwise an operator who configures a single server on a member's
// directory would depose a healthy leader.
func (r *Replica) leadAlone() error {
	servers := r.Raft().GetConfiguration().Configuration().Servers
	voters := slices.Clone(servers)
	voters = slices.DeleteFunc(voters, func(s raft.Server) bool { return s.Suffrage != raft.Voter })
	if len(voters) != 1 || voters[0].ID != r.Identity.RaftID {
		err := fmt.Errorf("%s belongs to a member of an ensemble of %d servers (%v), but the configuration names this server alone",
			r.cfg.Dirs.Log, len(servers), servers)
		return errors.Join(err, r.Raft().Shutdown().Error())
	}
	var resp raft.TimeoutNowResponse
	err := r.transport.TimeoutNow(voters[0].ID, r.transport.LocalAddr(), &raft.TimeoutNowRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(voters[0].ID), Addr: []byte(r.transport.LocalAddr())},
	}, &resp)
	if err != nil { // no harm: the election timeout has the same effect
		r.log.Warn("could not become the leader immediately", "err", err)
	}
	return nil
}

const (
	// maxAppendEntries bounds one message to a follower. An entry has up to 256 KiB, so
	// one message can be sent within any timeout.
	maxAppendEntries = 32
	// never disables a Raft trigger. This package decides when to make snapshots.
	never = 1 << 62
)

// raftConfig returns the configuration of the Raft library.
func (r *Replica) raftConfig(id raft.ServerID) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = id
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = r.cfg.ElectionTimeout, r.cfg.ElectionTimeout, r.cfg.Lease
	c.CommitTimeout = time.Second // a fallback: see transport.Transport.Committed
	c.MaxAppendEntries = maxAppendEntries
	// A buffer in front of Raft would only hide entries from a shutdown: Raft never
	// answers the entries that are still in it. The batches are full anyway.
	c.BatchApplyCh = false
	c.ShutdownOnRemove = false
	c.NoLegacyTelemetry = true
	c.SnapshotThreshold = never
	c.SnapshotInterval = time.Hour
	c.TrailingLogs = minTrailing
	c.NoSnapshotRestoreOnStart = true // see restoreNewest
	c.Logger = RaftLogger(r.log)
	return c
}

// Stop shuts Raft down permanently. It gives up after limit and then closes the stores,
// because Raft's goroutines and the goroutines of its connections may be waiting for the
// stores. If a store fails in the meantime, Stop closes it immediately, because the
// control goroutine no longer sees the failure.
func (r *Replica) Stop(limit time.Duration) error {
	now := r.Raft()
	if now == nil {
		return nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		shutDown(now, r.transport)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var failed <-chan error
	if r.stores != nil {
		failed = r.stores.Failed()
	}
	var errs []error
	for {
		select {
		case <-done:
			return errors.Join(errs...)
		case err := <-failed:
			errs = append(errs, err, r.Close())
		case <-timer.C:
			return errors.Join(append(errs, fmt.Errorf("raft did not stop within %v: its goroutines are given up", limit), r.Close())...)
		}
	}
}

// EndRaft ends the current Raft instance, and waits for its end so that another instance
// can start.
func (r *Replica) EndRaft() { shutDown(r.Raft(), r.transport) }

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
