package raftlog

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/storage"
)

// The keys that Raft saves a vote under, one after the other.
const (
	keyVoteTerm      = "LastVoteTerm"
	keyVoteCandidate = "LastVoteCand"
)

// stable is the raft.StableStore of a Store. Reads are answered from memory.
type stable struct {
	health *health
	engine storage.Engine

	mu  turn
	rec record
	// term is the term of a vote before its candidate is known. Raft saves the term, then
	// the candidate. If the program stopped in between, Raft would believe that it gave the
	// new term's vote to the old term's candidate. We therefore keep the old pair until the
	// candidate arrives.
	term []byte
}

var _ raft.StableStore = (*stable)(nil)

// Set saves a value durably. It ends the goroutine after an I/O error and on a closed
// store, like GetLog.
func (s *stable) Set(key, val []byte) error {
	if err := s.health.enter(); err != nil {
		return s.health.orEnd(err)
	}
	return s.health.orEnd(s.health.leave(s.set(string(key), val)))
}

func (s *stable) set(key string, val []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key == keyVoteTerm {
		s.term = slices.Clone(val)
		return nil
	}
	next := s.rec.clone()
	next.Values[key] = slices.Clone(val)
	if key == keyVoteCandidate && s.term != nil {
		next.Values[keyVoteTerm] = s.term
	}
	if err := s.saveLocked(next); err != nil {
		return fmt.Errorf("%s: saving %s: %w", s.engine.Where(0), key, err)
	}
	if key == keyVoteCandidate {
		s.term = nil
	}
	return nil
}

func (s *stable) saveLocked(next record) error {
	b, err := encodeChecked(next)
	if err == nil {
		err = s.health.write(voteWrite, func() error { return s.engine.SaveRecord(b) })
	}
	if err == nil {
		s.rec = next
	}
	return err
}

// lowerFloor must be called before the entries from index on are removed.
func (s *stable) lowerFloor(index uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rec.Floor < index {
		return nil
	}
	next := s.rec.clone()
	next.Floor = index - 1
	return s.saveLocked(next)
}

// raiseFloor records that the log extends to last.
func (s *stable) raiseFloor(last uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rec.Floor == last {
		return nil
	}
	next := s.rec.clone()
	next.Floor = last
	return s.saveLocked(next)
}

// savedSnapshot records that there is a snapshot up to index.
func (s *stable) savedSnapshot(index uint64) error {
	if err := s.health.enter(); err != nil {
		return err
	}
	s.mu.Lock()
	next := s.rec.clone()
	next.Snapshot = index
	err := s.saveLocked(next)
	s.mu.Unlock()
	if err = s.health.leave(err); err != nil {
		return fmt.Errorf("%s: noting the snapshot at log index %d: %w", s.engine.Where(0), index, err)
	}
	return nil
}

// Get returns a value, nil if there is none.
func (s *stable) Get(key []byte) ([]byte, error) {
	if err := s.health.enter(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	v := slices.Clone(s.rec.Values[string(key)])
	s.mu.Unlock()
	return v, s.health.leave(nil)
}

// SetUint64 saves a number durably. It doesn't return after an I/O error.
func (s *stable) SetUint64(key []byte, val uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, val))
}

// GetUint64 returns a number, 0 if there is none.
func (s *stable) GetUint64(key []byte) (uint64, error) {
	v, err := s.Get(key)
	if err != nil || len(v) == 0 {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("stable value %s: %d bytes are not a number", key, len(v))
	}
	return binary.BigEndian.Uint64(v), nil
}
