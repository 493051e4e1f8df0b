package replica

import (
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
)

// Stores is the interface of raftlog.Store, so that tests can inject faults.
type Stores interface {
	datadir.Stores
	// SetObserver and SetStoring are called before anything is stored.
	SetObserver(f func(sync time.Duration)) // called with the duration of each write to the log's disk
	SetStoring(f func(entries []*raft.Log)) // told the entries about to be stored
	Keeps() bool                            // the log may read an entry's data after it was applied
	Hanging() time.Duration                 // how long the current write has been waiting
	TakeLock() io.Closer                    // the directory's lock, nil if there is none

	Failed() <-chan error
	MeanEntryBytes() int64
	Close() error
}

// openStores opens the stores according to the configuration.
func (r *Replica) openStores() error {
	s, err := r.cfg.Open(&r.cfg)
	if err != nil {
		return err
	}
	r.stores = s
	s.SetObserver(func(d time.Duration) { r.Counters.Fsync.Observe(1, int64(d)) })
	if r.cfg.Storing != nil {
		s.SetStoring(r.cfg.Storing)
	}
	return nil
}

// OpenStores opens the stores outside of tests.
func OpenStores(c *Config) (Stores, error) {
	if c.Memory {
		return raftlog.Memory(c.Logger), nil
	}
	s, err := raftlog.Open(raftlog.Options{
		FS: c.Dirs.FS, Kind: c.Store, Bolt: c.Bolt, SegmentBytes: c.SegmentBytes, LogDir: c.Dirs.Log, SnapDir: c.Dirs.Snap, Logger: c.Logger, Retain: c.SnapRetain,
		NoCache: c.Server.Standalone,
	})
	if err != nil {
		return nil, err // not s: a nil *raftlog.Store is not a nil Stores
	}
	return s, nil
}

// restoreNewest loads the newest snapshot into the machine.
func (r *Replica) restoreNewest() error {
	begin := time.Now()
	newest, err := r.Machine.LoadNewest(r.stores.Snapshots())
	if err != nil && newest != nil {
		err = fmt.Errorf("snapshot %s in %s: %w", newest.ID, r.cfg.Dirs.Snap, err)
	}
	if err == nil && newest != nil {
		r.Counters.SnapLoad.Since(begin)
		r.lastSnapshot.Store(&lastSnapshot{r.Machine.Tree.LastZxid(), newest.Size, snapshotTime(newest.ID)})
	}
	return err
}
