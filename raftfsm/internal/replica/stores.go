package raftfsm

import (
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/raftlog"
)

// stores is the interface of raftlog.Store, so that tests can inject faults.
type stores interface {
	// SetObserver and SetStoring are called before anything is stored.
	SetObserver(f func(sync time.Duration)) // told how long each write to the log's disk took
	SetStoring(f func(entries []*raft.Log)) // told the entries about to be stored
	Keeps() bool                            // the log may read an entry's data after it was applied
	Hanging() time.Duration                 // how long the current write has been waiting
	TakeLock() io.Closer                    // the directory's lock, nil if there is none

	Logs() raft.LogStore
	Stable() raft.StableStore
	Snapshots() raft.SnapshotStore
	Failed() <-chan error
	MeanEntryBytes() int64
	Close() error
}

// openStores opens the stores according to the configuration.
func (n *replica) openStores() error {
	s, err := n.cfg.open(n.cfg)
	if err != nil {
		return err
	}
	n.stores = s
	s.SetObserver(func(d time.Duration) { n.numbers.Fsync.Observe(1, int64(d)) })
	s.SetStoring(n.storing)
	return nil
}

// openRaftLog opens the stores outside of tests.
func openRaftLog(c Config) (stores, error) {
	if c.Memory {
		return raftlog.Memory(c.Logger), nil
	}
	s, err := raftlog.Open(raftlog.Options{
		FS: c.FS, Kind: raftlog.Kind(c.Store), Bolt: c.Bolt, SegmentBytes: c.LogSegment, LogDir: c.LogDir, SnapDir: c.SnapDir, Logger: c.Logger, Retain: c.SnapRetain,
		NoCache: c.standalone(),
	})
	if err != nil {
		return nil, err // not s: a nil *raftlog.Store is not a nil stores
	}
	return s, nil
}

// keepsEntries reports whether the log may still read an entry's data after the entry
// was applied here, to send it to followers.
func (n *replica) keepsEntries() bool { return n.stores.Keeps() }

// restoreNewest loads the newest snapshot into the machine.
func (n *replica) restoreNewest() error {
	begin := time.Now()
	newest, err := n.machine.LoadNewest(n.stores.Snapshots())
	if err != nil && newest != nil {
		err = fmt.Errorf("snapshot %s in %s: %w", newest.ID, n.cfg.SnapDir, err)
	}
	if err == nil && newest != nil {
		n.numbers.SnapLoad.Since(begin)
		n.lastSnapshot.Store(&lastSnapshot{n.tree.LastZxid(), newest.Size, snapshotTime(newest.ID)})
	}
	return err
}
