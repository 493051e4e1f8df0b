package raftlog

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/storage"
)

// Store is the durable state of a Raft node: log, vote and snapshots.
type Store struct {
	kind      Kind
	opts      Options
	health    *health
	engine    storage.Engine
	logs      *logs
	stable    *stable
	snapshots raft.SnapshotStore
	lock      io.Closer // nil in memory

	closing sync.Once
	err     error
}

// Open opens the store in the directories of o, or creates it. If anything is missing or
// damaged, the error names the file and the log index.
func Open(o Options) (*Store, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	for _, dir := range []string{o.LogDir, o.SnapDir} {
		if err := vfs.MkdirSynced(o.FS, dir); err != nil {
			return nil, err
		}
	}
	lock, err := Lock(o.FS, o.LogDir)
	if err != nil {
		return nil, err
	}
	s := &Store{opts: o, health: newHealth(o.Logger), lock: lock}
	if err := s.open(); err != nil {
		if s.engine != nil {
			err = errors.Join(err, s.engine.Close())
		}
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

func (s *Store) open() error {
	var err error
	if s.kind, err = chooseKind(s.opts.FS, s.opts.LogDir, s.opts.Kind); err != nil {
		return err
	}
	if err := refuseLostLog(s.opts); err != nil {
		return err
	}
	snaps, err := openSnapshots(s.opts)
	if err != nil {
		return err
	}
	s.snapshots = snaps
	verified := make(chan struct{})
	go func() { // while the log comes from the disk
		defer close(verified)
		_, _ = snaps.newest(0) // check asks again
	}()
	s.engine, err = openEngine(s.kind, s.opts, s.health)
	if <-verified; err != nil {
		return err
	}
	if s.opts.wrapEngine != nil {
		s.engine = s.opts.wrapEngine(s.engine)
	}
	if err := s.assemble(snaps.covers); err != nil {
		return err
	}
	snaps.saved = s.stable.savedSnapshot
	if err := s.check(snaps); err != nil {
		return err
	}
	// In a power failure the directory may lose files that Open created, so we acknowledge
	// nothing before this.
	return errors.Join(s.opts.FS.SyncDir(s.opts.LogDir), s.opts.FS.SyncDir(s.opts.SnapDir))
}

func openEngine(k Kind, o Options, h *health) (storage.Engine, error) {
	if k == WAL {
		return openWAL(o, h)
	}
	path := filepath.Join(o.LogDir, boltFileName)
	if o.Bolt == nil {
		return nil, fmt.Errorf("%s: %w", path, errNoBolt)
	}
	rec, err := encodeChecked(record{}) // a file without a record is damaged
	if err != nil {
		return nil, err
	}
	return o.Bolt.Open(o.FS, path, rec)
}

var errNoBolt = errors.New("this program doesn't include log stores of kind bolt")

// assemble builds the log store and the stable store on top of the engine.
func (s *Store) assemble(covered func(uint64, bool) error) error {
	raw, err := s.engine.LoadRecord()
	if err != nil {
		return fmt.Errorf("%s: %w", s.engine.Where(0), err)
	}
	rec, err := decodeRecord(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", s.engine.Where(0), err)
	}
	s.stable = &stable{health: s.health, engine: s.engine, mu: newTurn(), rec: rec}
	s.logs = &logs{write: newTurn(), health: s.health, engine: s.engine, stable: s.stable, covered: covered}
	if !s.opts.NoCache {
		s.logs.cache.limit = s.opts.CacheBytes
	}
	s.logs.first, s.logs.last, err = s.engine.Range()
	return err
}

// check compares the log and the snapshots with the record.
func (s *Store) check(snaps *fileSnapshots) error {
	first, last := s.logs.first, s.logs.last
	if err := s.stable.rec.reached(s.engine.Where(last), last); err != nil {
		return err
	}
	snap, err := snaps.recoverNewest(first, last)
	if err != nil {
		return err
	}
	if err := s.stable.rec.covered(snaps.dir, max(last, snap)); err != nil {
		return err
	}
	if first > snap+1 {
		return errGap(s.engine.Where(first), snaps.dir, first, snap)
	}
	return s.sample(first, last)
}

// sample reads the newest entries to get their mean size.
func (s *Store) sample(first, last uint64) error {
	const n = 64
	if first == 0 {
		return nil
	}
	for i := max(first, last-min(last, n)+1); i <= last; i++ {
		var l raft.Log
		if _, err := s.logs.read(i, &l); err != nil {
			return err
		}
		s.logs.weigh(&l)
	}
	return nil
}

// Memory returns a store that keeps everything in memory.
func Memory(logger *slog.Logger) *Store {
	snaps := &memorySnapshots{}
	s := &Store{
		kind:      memory,
		opts:      Options{Kind: memory, Logger: logger}.withDefaults(),
		engine:    newMemoryEngine(),
		snapshots: snaps,
	}
	s.health = newHealth(s.opts.Logger)
	s.opts.NoCache = true // the entries are in memory anyway
	if err := s.assemble(snaps.covers); err != nil {
		s.health.fail(err) // cannot happen: there is nothing to read
	}
	return s
}

// TakeLock transfers the lock of the log directory to the caller, who must close it;
// Close then doesn't. A store in memory has no lock, and TakeLock returns nil.
func (s *Store) TakeLock() io.Closer {
	lock := s.lock
	if s.lock = nil; lock == nil {
		return nil
	}
	return lock
}

// Logs returns the log.
func (s *Store) Logs() raft.LogStore { return s.logs }

// SetStoring makes the store call f with entries that are about to be written, including
// their checksums; the entries no longer change. It must be called before the log is
// used, and f must not block.
func (s *Store) SetStoring(f func(entries []*raft.Log)) { s.logs.storing = f }

// Stable returns the store of the term and the vote.
func (s *Store) Stable() raft.StableStore { return s.stable }

// Snapshots returns the snapshot store. A failure to write a snapshot doesn't harm the
// log; the error is returned but not latched.
func (s *Store) Snapshots() raft.SnapshotStore { return s.snapshots }

// Failed returns a channel that gets the first I/O error. The server must then stop.
func (s *Store) Failed() <-chan error { return s.health.failed }

// Keeps reports whether the store still refers to the data of entries after StoreLogs has
// returned.
func (s *Store) Keeps() bool { return s.kind == memory || !s.opts.NoCache }

// Hanging returns how long the oldest write to the log or of the vote has been running, 0
// if none is. If that is too long, a leader should not send heartbeats: otherwise no other
// server replaces it.
func (s *Store) Hanging() time.Duration { return s.health.oldest() }

// MeanEntryBytes returns the mean size of the newest entries, to convert a limit in bytes
// into a limit in entries.
func (s *Store) MeanEntryBytes() int64 { return s.logs.mean.Load() }

// SetObserver sets a function that is called after every fsynced write, on the goroutine
// that wrote, with the duration of the write.
func (s *Store) SetObserver(f func(d time.Duration)) { s.health.observer.Store(&f) }

// Close closes the store; shut down Raft first. Calls that an error has blocked return
// that error, unless it would make Raft panic. If a call hangs in the disk for longer
// than StallLimit, Close stops waiting for it; its files are closed when it returns.
func (s *Store) Close() error {
	s.closing.Do(func() { s.err = s.shut() })
	return s.err
}

func (s *Store) shut() error {
	late, err := s.health.close(s.opts.StallLimit)
	if err != nil {
		go func() {
			<-late
			_ = s.shutEngine() // no caller is left to get the error
		}()
		return err
	}
	var errs []error
	if s.health.healthy() && s.kind != memory {
		errs = append(errs, s.stable.raiseFloor(s.logs.last))
	}
	return errors.Join(append(errs, s.shutEngine())...)
}

// shutEngine closes the files.
func (s *Store) shutEngine() error {
	err := s.engine.Close()
	if snaps, ok := s.snapshots.(*fileSnapshots); ok {
		err = errors.Join(err, snaps.close())
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}
