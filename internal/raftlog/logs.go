package raftlog

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/storage"
)

// maxEntryBytes is far above the size of the proposer's batches, and small enough that
// lengths in a segment fit their fields.
const maxEntryBytes = 1 << 30

// logs is the raft.LogStore of a Store.
//
// We keep first and last here so that reading them costs nothing and never waits for a
// write. We change them before a removal starts, because we treat an entry inside [first,
// last] that the engine doesn't have as damage.
type logs struct {
	health *health
	engine storage.Engine
	stable *stable
	// covered returns nil if a verified snapshot makes the entries up to index
	// dispensable; all: the whole log is removed, see DeleteRange.
	covered func(index uint64, all bool) error

	// storing is called with entries, including their checksums, that are about to be
	// written; nil: not called.
	storing func(entries []*raft.Log)

	cache cache
	mean  atomic.Int64 // moving mean of bytes per entry

	write       turn // serialises StoreLogs and DeleteRange
	bounds      sync.RWMutex
	first, last uint64 // guarded by bounds
	// removals counts calls that removed entries. It changes after bounds does and before
	// anything is removed.
	removals atomic.Uint64
}

var (
	_ raft.LogStore          = (*logs)(nil)
	_ raft.MonotonicLogStore = (*logs)(nil)
)

// IsMonotonic makes Raft remove the whole log after it has installed a snapshot, instead
// of keeping entries that may conflict with the snapshot.
func (s *logs) IsMonotonic() bool { return true }

// FirstIndex returns the index of the oldest entry, 0 if there is none.
func (s *logs) FirstIndex() (uint64, error) { return s.bound(func() uint64 { return s.first }) }

// LastIndex returns the index of the newest entry, 0 if there is none.
func (s *logs) LastIndex() (uint64, error) { return s.bound(func() uint64 { return s.last }) }

func (s *logs) bound(get func() uint64) (uint64, error) {
	if err := s.health.enter(); err != nil {
		return 0, err
	}
	s.bounds.RLock()
	n := get()
	s.bounds.RUnlock()
	return n, s.health.leave(nil)
}

func (s *logs) holds(index uint64) bool {
	s.bounds.RLock()
	defer s.bounds.RUnlock()
	return s.first != 0 && s.first <= index && index <= s.last
}

// GetLog reads and verifies an entry. It ends the goroutine if that fails or the store is
// closed: Raft panics if it can't read an entry that it wants to apply.
func (s *logs) GetLog(index uint64, log *raft.Log) error {
	if err := s.health.enter(); err != nil {
		return s.health.orEnd(err)
	}
	if s.cache.get(index, log) {
		return s.health.orEnd(s.health.leave(nil))
	}
	found, err := s.read(index, log)
	if err := s.health.orEnd(s.health.leave(err)); err != nil {
		return err
	}
	if !found {
		return raft.ErrLogNotFound // compared by value in Raft
	}
	return nil
}

// read returns false for an entry that isn't in the log. It returns an error if the entry
// should exist but is missing, or if it differs from the stored one.
func (s *logs) read(index uint64, log *raft.Log) (bool, error) {
	for {
		removals := s.removals.Load()
		if !s.holds(index) {
			return false, nil
		}
		var l raft.Log // a decoder may leave fields of a reused entry unchanged
		err := s.engine.GetLog(index, &l)
		if err == nil && l.Index != index {
			err = fmt.Errorf("found entry %d in its place", l.Index)
		}
		if err == nil {
			err = verifySeal(&l)
		}
		if err == nil {
			*log = l
			return true, nil
		}
		if removals == s.removals.Load() {
			return false, fmt.Errorf("%s: log index %d: %w", s.engine.Where(index), index, err)
		}
		// The entry, or its file, was removed while we were reading.
	}
}

// StoreLog is StoreLogs for one entry.
func (s *logs) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

// StoreLogs appends entries durably. The first index must follow the last one in the log.
func (s *logs) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	if err := s.health.enter(); err != nil {
		return err
	}
	s.write.Lock()
	misuse := s.checkAppend(logs)
	var err error
	if misuse == nil {
		err = s.append(logs)
	}
	s.write.Unlock()
	if err := s.health.leave(err); err != nil {
		return err
	}
	return misuse
}

func (s *logs) checkAppend(logs []*raft.Log) error {
	s.bounds.RLock()
	next := s.last + 1
	if s.last == 0 {
		next = logs[0].Index
	}
	s.bounds.RUnlock()
	for _, l := range logs {
		if l.Index != next || next == 0 {
			return fmt.Errorf("log store: append of index %d where %d follows", l.Index, next)
		}
		if len(l.Data) > maxEntryBytes {
			return fmt.Errorf("log store: entry %d has %d bytes, more than %d", l.Index, len(l.Data), maxEntryBytes)
		}
		next++
	}
	return nil
}

func (s *logs) append(logs []*raft.Log) error {
	from := logs[0].Index
	if err := sealAll(logs); err != nil {
		return fmt.Errorf("%s: %w", s.engine.Where(from), err)
	}
	if s.storing != nil {
		s.storing(logs)
	}
	if err := s.health.write(logWrite, func() error { return s.engine.StoreLogs(logs) }); err != nil {
		return fmt.Errorf("%s: storing entries from log index %d: %w", s.engine.Where(from), from, err)
	}
	s.cache.add(logs)
	s.bounds.Lock()
	if s.first == 0 {
		s.first = from
	}
	s.last = logs[len(logs)-1].Index
	s.bounds.Unlock()
	for _, l := range logs {
		s.weigh(l)
	}
	return nil
}

// weigh updates a mean over roughly the last 256 entries.
func (s *logs) weigh(l *raft.Log) {
	n, m := int64(len(l.Data)), s.mean.Load()
	if m == 0 {
		s.mean.Store(n)
		return
	}
	s.mean.Store(m + (n-m)/256)
}

// DeleteRange removes entries from the front (compaction) or from the end (conflict with
// the leader's entries), lo to hi inclusive. It refuses to remove from the front unless
// the newest snapshot covers the entries and has been verified. Raft also removes the
// whole log: after installing a snapshot, and if every entry conflicts.
func (s *logs) DeleteRange(lo, hi uint64) error {
	if lo > hi {
		return nil
	}
	if err := s.health.enter(); err != nil {
		return err
	}
	// Reading back a large snapshot is slow, so we do it before we block writes. remove
	// asks again and gets the answer immediately.
	if first, _ := s.FirstIndex(); lo <= first {
		_ = s.covered(hi, true)
	}
	s.write.Lock()
	refused, err := s.remove(lo, hi)
	s.write.Unlock()
	if err := s.health.leave(err); err != nil {
		return err
	}
	return refused
}

func (s *logs) remove(lo, hi uint64) (refused, err error) {
	s.bounds.RLock()
	first, last := s.first, s.last
	s.bounds.RUnlock()
	if first == 0 || hi < first || lo > last {
		return nil, nil
	}
	lo, hi = max(lo, first), min(hi, last)
	if lo > first && hi < last {
		return fmt.Errorf("log store: entries %d to %d are in the middle of %d to %d", lo, hi, first, last), nil
	}
	if lo == first {
		if err := s.covered(hi, hi == last); err != nil {
			return fmt.Errorf("log store: keeping entries %d to %d: %w", lo, hi, err), nil
		}
	}
	if hi == last {
		floor := lo
		if lo == first {
			floor = 1 // even if the log once ended before the current first entry
		}
		if err := s.stable.lowerFloor(floor); err != nil {
			return nil, fmt.Errorf("%s: removing entries from log index %d: %w", s.engine.Where(lo), lo, err)
		}
	}
	s.cache.remove(lo, hi)
	s.bounds.Lock()
	switch {
	case lo == first && hi == last:
		s.first, s.last = 0, 0
	case lo == first:
		s.first = hi + 1
	default:
		s.last = lo - 1
	}
	s.bounds.Unlock()
	s.removals.Add(1)
	err = s.health.write(logWrite, func() error { return s.engine.DeleteRange(lo, hi) })
	if err != nil {
		return nil, fmt.Errorf("%s: removing entries %d to %d: %w", s.engine.Where(lo), lo, hi, err)
	}
	return nil, nil
}
