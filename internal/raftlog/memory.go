package raftlog

import "github.com/hashicorp/raft"

// memoryEngine keeps the log in memory: for tests, simulation and members that don't have
// to survive.
type memoryEngine struct {
	*raft.InmemStore
	record []byte // guarded by Store.stable.mu
}

func newMemoryEngine() *memoryEngine { return &memoryEngine{InmemStore: raft.NewInmemStore()} }

func (m *memoryEngine) Range() (first, last uint64, err error) {
	if first, err = m.FirstIndex(); err == nil {
		last, err = m.LastIndex()
	}
	return first, last, err
}

func (m *memoryEngine) LoadRecord() ([]byte, error) { return m.record, nil }
func (m *memoryEngine) SaveRecord(rec []byte) error { m.record = rec; return nil }
func (m *memoryEngine) Where(uint64) string         { return "memory" }
func (m *memoryEngine) Close() error                { return nil }
