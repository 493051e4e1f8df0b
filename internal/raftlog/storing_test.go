package raftlog

import (
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestStoringIsToldOfSealedEntries: the storing callback may send the entries, so they
// should already have their checksums and not change any more.
func TestStoringIsToldOfSealedEntries(t *testing.T) {
	t.Parallel()
	s := Memory(nil)
	told := 0
	s.SetStoring(func(entries []*raft.Log) {
		for _, l := range entries {
			if err := verifySeal(l); err != nil {
				t.Errorf("entry %d: %v", l.Index, err)
			}
		}
		if last, err := s.Logs().LastIndex(); err != nil || last != 0 {
			t.Errorf("the log ends with %d already, %v", last, err)
		}
		told += len(entries)
	})
	must.Do(t, s.Logs().StoreLogs([]*raft.Log{{Index: 1, Term: 1, Data: []byte("a")}, {Index: 2, Term: 1}}))
	if told != 2 {
		t.Errorf("told of %d entries", told)
	}
	must.Do(t, s.Close())
}
