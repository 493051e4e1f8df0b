package raftfsm

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
)

// openState opens the stores, finds out which server they belong to, and loads the
// newest snapshot.
func (n *Node) openState() error {
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
func (n *Node) loadIdentity() (err error) {
	switch {
	case !n.cfg.Memory:
		server := n.cfg.server()
		server.Joins = n.peers.IsMember()
		n.identity, err = n.cfg.dirs().Identify(server, n.stores, n.log)
	case n.cfg.standalone():
		n.identity = datadir.NewIdentity(n.cfg.ID)
	}
	return err
}

// startRaft starts Raft on the opened state. If the state has no configuration yet,
// bootstrap becomes the first one; an empty bootstrap leaves that to a leader.
func (n *Node) startRaft(bootstrap raft.Configuration) error {
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
func (n *Node) finishBootstrap(bootstrap raft.Configuration) error {
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
