package replica

import (
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/propose"
)

// Snapshot writes a snapshot now and truncates the log.
func (r *Replica) Snapshot() error {
	now := r.Raft()
	if now == nil {
		return propose.ErrNoRaft
	}
	r.reloadTrailing(now)
	err := now.Snapshot().Error()
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
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
func (r *Replica) reloadTrailing(now *raft.Raft) {
	trailing := uint64(minTrailing)
	if mean := r.stores.MeanEntryBytes(); mean > 0 {
		trailing = uint64(min(max(trailingBytes/mean, minTrailing), maxTrailing))
	}
	if r.cfg.SnapTrailing > 0 {
		trailing = uint64(r.cfg.SnapTrailing)
	}
	if r.fleeting() {
		trailing = 0
	}
	if err := r.Reload(now, func(c *raft.ReloadableConfig) { c.TrailingLogs = trailing }); err != nil {
		r.log.Warn("could not limit the length of the log", "trailing", trailing, "err", err)
	}
}

// Reload changes the settings of a running Raft instance.
func (r *Replica) Reload(now *raft.Raft, change func(*raft.ReloadableConfig)) error {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	c := now.ReloadableConfig()
	change(&c)
	return now.ReloadConfig(c)
}

// TakeSnapshots writes a snapshot whenever the machine reports that one is due, until stop is
// closed.
func (r *Replica) TakeSnapshots(stop <-chan struct{}) {
	var missing missingSnapshots
	for {
		select {
		case <-r.Machine.SnapshotDue():
			if err := r.Snapshot(); err != nil {
				missing.failed(r.log, r.cfg.Now(), r.cfg.Dirs.Snap, err)
			} else {
				missing.written(r.log)
			}
		case <-stop:
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
	log.Warn("could not write a snapshot, trying again; the log grows until then; if the disk is full, free space or use a larger disk for dataDir",
		"directory", dir, "err", err, "failures", m.failures)
}

// written logs that snapshots are written again.
func (m *missingSnapshots) written(log *slog.Logger) {
	if m.failures > 0 {
		log.Info("writing snapshots works again", "failures", m.failures)
	}
	*m = missingSnapshots{}
}

// lastSnapshot describes the newest snapshot of this server.
type lastSnapshot struct {
	zxid, bytes int64
	at          time.Time
}

// LastSnapshot returns the zxid and the time of the newest snapshot that this server
// has written or started from. ok is false when there is none.
func (r *Replica) LastSnapshot() (zxid int64, at time.Time, ok bool) {
	s := r.lastSnapshot.Load()
	if s == nil {
		return 0, time.Time{}, false
	}
	return s.zxid, s.at, true
}

// LastSnapshotBytes returns the size of that snapshot in bytes, or 0 when there is
// none.
func (r *Replica) LastSnapshotBytes() int64 {
	if s := r.lastSnapshot.Load(); s != nil {
		return s.bytes
	}
	return 0
}

func (r *Replica) noteSnapshot(zxid, bytes int64) {
	r.lastSnapshot.Store(&lastSnapshot{zxid, bytes, r.cfg.Wall()})
}

// snapshotTime returns the time at which a snapshot was written, which is the last part
// of its id. It returns zero if the id has no time.
func snapshotTime(id string) time.Time {
	ms, err := strconv.ParseInt(id[strings.LastIndexByte(id, '-')+1:], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
