package raftfsm

import (
	"fmt"
	"io"
	"log/slog"
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
func (n *Node) openStores() error {
	s, err := n.cfg.open(n.cfg)
	if err != nil {
		return err
	}
	n.stores = s
	s.SetObserver(func(d time.Duration) { n.numbers.Fsync.Observe(1, int64(d)) })
	s.SetStoring(n.peers.Storing)
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
func (n *Node) keepsEntries() bool { return n.stores.Keeps() }

// restoreNewest loads the newest snapshot into the machine.
func (n *Node) restoreNewest() error {
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

const (
	// minTrailing is the minimum number of entries that stay in the log before a
	// snapshot, so that a follower that lags a little needs no snapshot.
	minTrailing = 1024
	// trailingBytes is roughly how many bytes may stay beyond that.
	trailingBytes = 64 << 20
	// maxTrailing limits the number of very small entries that stay.
	maxTrailing = 100_000
)

// reloadTrailing tells Raft how many entries to keep before the next snapshot.
func (n *Node) reloadTrailing(r *raft.Raft) {
	trailing := uint64(minTrailing)
	if mean := n.stores.MeanEntryBytes(); mean > 0 {
		trailing = uint64(min(max(trailingBytes/mean, minTrailing), maxTrailing))
	}
	if n.cfg.SnapTrailing > 0 {
		trailing = uint64(n.cfg.SnapTrailing)
	}
	if n.cfg.Memory && n.cfg.standalone() {
		trailing = 0 // no server will ever read them
	}
	if err := n.reload(r, func(c *raft.ReloadableConfig) { c.TrailingLogs = trailing }); err != nil {
		n.log.Warn("could not bound the log", "trailing", trailing, "err", err)
	}
}

// reload changes the settings of a running Raft instance.
func (n *Node) reload(r *raft.Raft, change func(*raft.ReloadableConfig)) error {
	n.reloading.Lock()
	defer n.reloading.Unlock()
	c := r.ReloadableConfig()
	change(&c)
	return r.ReloadConfig(c)
}

// snapshotLoop writes a snapshot whenever the machine reports that one is due.
func (n *Node) snapshotLoop() {
	var missing missingSnapshots
	for {
		select {
		case <-n.machine.SnapshotDue():
			if err := n.Snapshot(); err != nil {
				missing.failed(n.log, n.cfg.Now(), n.cfg.SnapDir, err)
			} else {
				missing.written(n.log)
			}
		case <-n.stopping:
			return
		}
	}
}

// The pause between two lines about snapshots that can't be written grows from the first
// to the second. Under load, the server tries every few seconds.
const (
	firstMissing = 10 * time.Second
	maxMissing   = 10 * time.Minute
)

// missingSnapshots logs that snapshots can't be written.
type missingSnapshots struct {
	failures int // since the last snapshot
	pause    time.Duration
	until    time.Time // only count until then
}

// failed logs or counts one failure.
func (m *missingSnapshots) failed(log *slog.Logger, now time.Time, dir string, err error) {
	m.failures++
	if now.Before(m.until) {
		return
	}
	m.pause = min(max(2*m.pause, firstMissing), maxMissing)
	m.until = now.Add(m.pause)
	log.Warn("no snapshot was written: the log grows until one is, and the server tries again; if the disk is full, free space there, or give dataDir a larger disk",
		"directory", dir, "err", err, "failures", m.failures)
}

// written logs that snapshots are written again.
func (m *missingSnapshots) written(log *slog.Logger) {
	if m.failures > 0 {
		log.Info("a snapshot was written again", "failures", m.failures)
	}
	*m = missingSnapshots{}
}
