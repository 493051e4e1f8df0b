package raftlog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/vfs"
)

const (
	snapDirName    = "snapshots"
	snapTmpSuffix  = ".tmp"     // being written
	snapOldSuffix  = ".old"     // being removed
	snapBadSuffix  = ".damaged" // set aside, see recoverNewest
	snapMetaName   = "meta.json"
	snapStateName  = "state.bin"
	snapIDPattern  = "%d-%d-%d" // term, index, Unix milliseconds
	snapBufferSize = 256 << 10
)

// fileSnapshots is a raft.SnapshotStore on disk. We don't use Raft's own store, because it
// doesn't fsync a snapshot's directory before it renames it, has no checksum over the
// metadata, and skips a snapshot if it can't read the metadata.
//
// A snapshot is a directory SnapDir/snapshots/<term>-<index>-<time> with meta.json and
// state.bin.
type fileSnapshots struct {
	fs     vfs.FS
	dir    string
	retain int
	cached int64 // bytes of each snapshot written through the page cache
	log    *slog.Logger

	removals *removals
	// saved is called with the index of a snapshot once it is durable.
	saved func(index uint64) error

	mu       sync.Mutex
	fresh    string          // id of a snapshot that recoverNewest has just read
	verified map[string]bool // by id: read back completely, checksum matches
	readers  map[string]int  // by id: number of open readers
}

var _ raft.SnapshotStore = (*fileSnapshots)(nil)

// snapID is the name of a snapshot.
type snapID struct {
	term, index, msec uint64
	name              string
}

func parseSnapID(name string) (snapID, bool) {
	id := snapID{name: name}
	parts := strings.Split(name, "-")
	if len(parts) != 3 {
		return id, false
	}
	for i, p := range []*uint64{&id.term, &id.index, &id.msec} {
		var err error
		if *p, err = strconv.ParseUint(parts[i], 10, 64); err != nil {
			return id, false
		}
	}
	return id, fmt.Sprintf(snapIDPattern, id.term, id.index, id.msec) == name
}

func openSnapshots(o Options) (*fileSnapshots, error) {
	s := &fileSnapshots{
		fs:       o.FS,
		dir:      filepath.Join(o.SnapDir, snapDirName),
		retain:   o.Retain,
		cached:   o.CachedSnapshot,
		log:      o.Logger,
		removals: newRemovals(o),
		verified: map[string]bool{},
		readers:  map[string]int{},
	}
	if err := vfs.MkdirSynced(s.fs, s.dir); err != nil {
		return nil, err
	}
	return s, s.sweep()
}

// sweep removes the remains of interrupted writes and removals.
func (s *fileSnapshots) sweep() error {
	all, err := s.fs.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range all {
		if strings.HasSuffix(e.Name(), snapTmpSuffix) || strings.HasSuffix(e.Name(), snapOldSuffix) {
			if err := s.fs.RemoveAll(filepath.Join(s.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return s.fs.SyncDir(s.dir)
}

// ids returns the snapshots by name, newest first.
func (s *fileSnapshots) ids() ([]snapID, error) {
	all, err := s.fs.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var ids []snapID
	for _, e := range all {
		if id, ok := parseSnapID(e.Name()); ok && e.IsDir() {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b snapID) int {
		return cmp.Or(cmp.Compare(b.term, a.term), cmp.Compare(b.index, a.index), cmp.Compare(b.msec, a.msec))
	})
	return ids, nil
}

// List implements raft.SnapshotStore, newest first. We fail if the newest snapshot's
// metadata isn't readable: otherwise Raft would silently use an older snapshot.
func (s *fileSnapshots) List() ([]*raft.SnapshotMeta, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	var metas []*raft.SnapshotMeta
	for i, id := range ids {
		m, err := readSnapMeta(s.fs, filepath.Join(s.dir, id.name))
		if err != nil && i == 0 {
			return nil, err
		}
		if err != nil {
			s.log.Warn("snapshot: an older one is damaged", "err", err)
			continue
		}
		if metas = append(metas, &m.SnapshotMeta); len(metas) == s.retain {
			break
		}
	}
	return metas, nil
}

// Open implements raft.SnapshotStore: it verifies a whole snapshot and returns a reader
// of its state. The first Open after the start doesn't read the newest snapshot again.
func (s *fileSnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	if _, ok := parseSnapID(id); !ok {
		return nil, nil, fmt.Errorf("snapshot %q does not exist", id)
	}
	s.reading(id, 1)
	s.mu.Lock()
	verify := s.fresh != id
	s.fresh = ""
	s.mu.Unlock()
	m, f, err := openSnapshot(s.fs, filepath.Join(s.dir, id), verify)
	if err != nil {
		s.reading(id, -1)
		return nil, nil, err
	}
	f.ended = sync.OnceFunc(func() { s.reading(id, -1) })
	s.isGood(id)
	return &m.SnapshotMeta, f, nil
}

// reading adds n to the number of readers of a snapshot.
func (s *fileSnapshots) reading(id string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers[id] += n; s.readers[id] == 0 {
		delete(s.readers, id)
	}
}

// isGood records that a snapshot was verified.
func (s *fileSnapshots) isGood(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verified[id] = true
}

// newest returns the newest snapshot, verified; nil if there is none. With vfs.Direct we
// bypass the page cache, so that we don't evict pages that other readers need.
func (s *fileSnapshots) newest(flag int) (*snapID, error) {
	ids, err := s.ids()
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	s.mu.Lock()
	known := s.verified[ids[0].name]
	s.mu.Unlock()
	if !known {
		err = s.verify(ids[0].name, flag)
	}
	return &ids[0], err
}

// verify reads a whole snapshot. It opens the state with flag.
func (s *fileSnapshots) verify(id string, flag int) error {
	s.reading(id, 1)
	defer s.reading(id, -1)
	_, f, err := readSnapshot(s.fs, filepath.Join(s.dir, id), flag, true)
	if err != nil {
		return err
	}
	s.isGood(id)
	return f.Close()
}

// covers returns nil if a verified snapshot makes the log entries up to index
// dispensable. The whole log (all) may be removed even if it extends beyond the snapshot:
// Raft does that if its entries conflict with the snapshot, or with the leader's while
// there is no snapshot yet.
func (s *fileSnapshots) covers(index uint64, all bool) error {
	n, err := s.newest(vfs.Direct)
	switch {
	case err != nil:
		return fmt.Errorf("the newest snapshot is unusable: %w", err)
	case n == nil && !all:
		return errors.New("no snapshot")
	case n != nil && n.index < index && !all:
		return fmt.Errorf("the newest snapshot ends at %d", n.index)
	}
	return nil
}

// recoverNewest verifies the newest snapshot. If it is damaged, we set it aside if the log
// [first, last] can replace it, starting from an older snapshot or from the first entry
// ever. recoverNewest returns the last index of the newest good snapshot.
func (s *fileSnapshots) recoverNewest(first, last uint64) (uint64, error) {
	for {
		n, err := s.newest(0) // it is about to be loaded
		if err == nil {
			if n == nil {
				return 0, nil
			}
			s.fresh = n.name
			return n.index, nil
		}
		ids, lerr := s.ids()
		if lerr != nil || len(ids) == 0 {
			return 0, errors.Join(err, lerr)
		}
		var older uint64
		if len(ids) > 1 {
			older = ids[1].index
		}
		bad := ids[0]
		if first == 0 || first > older+1 || last < bad.index {
			return 0, fmt.Errorf("%w; the log, from index %d to %d, cannot replace it", err, first, last)
		}
		s.log.Error("snapshot: the newest one is damaged, but the log still has its entries; setting it aside",
			"dir", filepath.Join(s.dir, bad.name), "err", err)
		path := filepath.Join(s.dir, bad.name)
		if err := errors.Join(s.fs.RemoveAll(path+snapBadSuffix), s.fs.Rename(path, path+snapBadSuffix), s.fs.SyncDir(s.dir)); err != nil {
			return 0, err
		}
	}
}

// Create implements raft.SnapshotStore.
func (s *fileSnapshots) Create(version raft.SnapshotVersion, index, term uint64,
	conf raft.Configuration, confIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	if version != 1 {
		return nil, fmt.Errorf("snapshot version %d is not supported", version)
	}
	for msec := uint64(time.Now().UnixMilli()); ; msec++ {
		name := fmt.Sprintf(snapIDPattern, term, index, msec)
		taken, err := vfs.Exists(s.fs, filepath.Join(s.dir, name))
		if err != nil {
			return nil, err
		}
		if taken {
			continue
		}
		return newSnapSink(s, raft.SnapshotMeta{
			Version: version, ID: name, Index: index, Term: term,
			Configuration: conf, ConfigurationIndex: confIndex,
		})
	}
}

// purge removes all but the newest snapshots. We rename each first, because a directory
// that has lost only some of its files must not look like a snapshot.
func (s *fileSnapshots) purge() {
	ids, err := s.ids()
	if err != nil || len(ids) <= s.retain {
		return
	}
	for _, id := range ids[s.retain:] {
		if err := s.remove(id.name); err != nil {
			s.log.Warn("snapshot: an old one could not be removed", "dir", filepath.Join(s.dir, id.name), "err", err)
		}
		s.mu.Lock()
		delete(s.verified, id.name)
		s.mu.Unlock()
	}
}

// remove removes a snapshot in the background, or immediately if a goroutine is reading
// it: an open file remains readable after its removal, but not if it is truncated in
// steps.
func (s *fileSnapshots) remove(id string) error {
	path := filepath.Join(s.dir, id)
	old := path + snapOldSuffix
	if err := errors.Join(s.fs.Rename(path, old), s.fs.SyncDir(s.dir)); err != nil {
		return err
	}
	s.mu.Lock()
	read := s.readers[id] > 0
	s.mu.Unlock()
	if read {
		return s.fs.RemoveAll(old)
	}
	s.removals.add(old)
	return nil
}

// close waits for the pending removals.
func (s *fileSnapshots) close() error { return s.removals.wait() }
