package raftlog

import (
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestLogRemovedBeyondItsFloor: a log is closed, continued, compacted beyond the index at
// which it was closed, and removed as a whole, as when a snapshot is installed. It should
// open again.
func TestLogRemovedBeyondItsFloor(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, o Options) {
		entry := func(i uint64) *raft.Log {
			return &raft.Log{Index: i, Term: 1, Type: raft.LogCommand, Data: []byte("x")}
		}
		s := mustOpen(t, o)
		must.Do(t, s.Logs().StoreLogs([]*raft.Log{entry(1), entry(2)}))
		must.Do(t, s.Close())
		s = mustOpen(t, o)
		must.Do(t, s.Logs().StoreLogs([]*raft.Log{entry(3), entry(4), entry(5)}))
		sink, err := s.Snapshots().Create(1, 5, 1, raft.Configuration{}, 1, nil)
		if err == nil {
			_, err = sink.Write([]byte("state"))
		}
		if err == nil {
			err = sink.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, hi := range []uint64{3, 5} {
			first, _ := s.Logs().FirstIndex()
			must.Do(t, s.Logs().DeleteRange(first, hi))
		}
		if floor := s.stable.rec.Floor; floor != 0 {
			t.Errorf("the log is empty and has to reach %d", floor)
		}
		must.Do(t, s.Close())
		mustOpen(t, o)
	})
}
