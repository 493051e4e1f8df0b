package raftlog

import (
	"errors"

	"github.com/hashicorp/raft"
)

// ErrClosed is returned by every call on a closed store, except GetLog and Set, which end
// the goroutine.
var ErrClosed = errors.New("log store is closed")

// engine is the library under a Store: a log and one small record. Store serialises the
// calls that write; reads may run concurrently with them.
type engine interface {
	FirstIndex() (uint64, error)
	LastIndex() (uint64, error)
	GetLog(index uint64, log *raft.Log) error
	StoreLogs(logs []*raft.Log) error
	// DeleteRange removes a prefix or a suffix.
	DeleteRange(min, max uint64) error
	// LoadRecord returns the record, nil if none was ever saved.
	LoadRecord() ([]byte, error)
	// SaveRecord replaces the record in one transaction.
	SaveRecord(rec []byte) error
	// Where names the file or directory that holds an entry, for messages.
	Where(index uint64) string
	Close() error
}

// memoryEngine keeps the log in memory: for tests, simulation and members that needn't
// survive.
type memoryEngine struct {
	*raft.InmemStore
	record []byte // guarded by Store.stable.mu
}

func newMemoryEngine() *memoryEngine { return &memoryEngine{InmemStore: raft.NewInmemStore()} }

func (m *memoryEngine) LoadRecord() ([]byte, error) { return m.record, nil }
func (m *memoryEngine) SaveRecord(rec []byte) error { m.record = rec; return nil }
func (m *memoryEngine) Where(uint64) string         { return "memory" }
func (m *memoryEngine) Close() error                { return nil }

// launcher is an engine that can start a write before its earlier writes are on disk.
type launcher interface {
	// Launch is StoreLogs without the wait. Await reports when an entry is on disk. A
	// later error is reported to the health of the store.
	Launch(logs []*raft.Log) error
	// Await returns true when an entry and all before it are on disk, or false if they
	// never will be.
	Await(index uint64) bool
	// Release unblocks all calls that wait for a disk that doesn't respond.
	Release()
}
