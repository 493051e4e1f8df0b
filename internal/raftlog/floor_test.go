package raftlog

import (
	"testing"

	"github.com/hashicorp/raft"
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
		if err := s.Logs().StoreLogs([]*raft.Log{entry(1), entry(2)}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, o)
		if err := s.Logs().StoreLogs([]*raft.Log{entry(3), entry(4), entry(5)}); err != nil {
			t.Fatal(err)
		}
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
			if err := s.Logs().DeleteRange(first, hi); err != nil {
				t.Fatal(err)
			}
		}
		if floor := s.stable.rec.Floor; floor != 0 {
			t.Errorf("the log is empty and has to reach %d", floor)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		mustOpen(t, o)
	})
}
