package raftlog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/tests/kit/must"
)

func TestSnapshots(t *testing.T) {
	t.Parallel()
	o := testOptions(t, WAL)
	o.Retain = 2
	s := mustOpen(t, o)
	store(t, s, 1, 50, 1)
	state := bytes.Repeat([]byte("0123456789"), 100_000)
	var ids []string
	for i := uint64(10); i <= 50; i += 10 {
		ids = append(ids, snapshot(t, s, i, 1, append(state, byte(i))))
	}
	canceled := must.Get(s.Snapshots().Create(1, 60, 1, raft.Configuration{}, 1, nil))(t)
	fmt.Fprint(canceled, "unfinished")
	unfinished := must.Get(s.Snapshots().Create(1, 61, 1, raft.Configuration{}, 1, nil))(t)
	fmt.Fprint(unfinished, "unfinished")
	must.Do(t, canceled.Cancel())
	s = reopen(t, s)
	metas, err := s.Snapshots().List()
	if err != nil || len(metas) != 2 || metas[0].ID != ids[4] || metas[1].ID != ids[3] {
		t.Fatalf("List: %v, %v", metas, err)
	}
	m := metas[0]
	if m.Index != 50 || m.Term != 1 || m.Version != 1 || m.ConfigurationIndex != 1 || len(m.Configuration.Servers) != 1 {
		t.Fatalf("metadata %+v", m)
	}
	if got := readState(t, s, ids[4]); !bytes.Equal(got, append(state, 50)) || m.Size != int64(len(got)) {
		t.Fatalf("%d bytes of state, metadata says %d", len(got), m.Size)
	}
	left, err := os.ReadDir(filepath.Join(o.SnapDir, snapDirName))
	if err != nil || len(left) != 2 {
		t.Fatalf("left behind: %v, %v", left, err)
	}
}

// The start reads the newest snapshot, so the first Open after it doesn't. Later ones do.
func TestOpenAfterTheStart(t *testing.T) {
	t.Parallel()
	o := testOptions(t, WAL)
	s := mustOpen(t, o)
	store(t, s, 1, 40, 1)
	id := snapshot(t, s, 30, 1, []byte("state"))
	s = reopen(t, s)
	flip(t, filepath.Join(o.SnapDir, snapDirName, id, snapStateName), 3, 1)
	if got := readState(t, s, id); string(got) != "staue" {
		t.Errorf("the first Open reads %q", got)
	}
	if _, _, err := s.Snapshots().Open(id); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("the second Open: %v", err)
	}
}

func TestDamagedNewestSnapshot(t *testing.T) {
	t.Parallel()
	for _, file := range []string{snapStateName, snapMetaName} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			o := testOptions(t, WAL)
			s := mustOpen(t, o)
			store(t, s, 1, 40, 1)
			old := snapshot(t, s, 20, 1, []byte("old state"))
			id := snapshot(t, s, 30, 1, []byte("new state"))
			path := filepath.Join(o.SnapDir, snapDirName, id, file)
			mustClose(t, s)
			flip(t, path, 5, 4)

			// The log still has everything after the older snapshot.
			c := crashed(t, o)
			log, lines := logLines()
			c.Logger = log
			s = mustOpen(t, c)
			metas, err := s.Snapshots().List()
			if err != nil || len(metas) != 1 || metas[0].ID != old {
				t.Fatalf("List: %v, %v", metas, err)
			}
			if !strings.Contains(lines.String(), file) {
				t.Errorf("nothing was logged: %s", lines)
			}
			if err := s.Logs().DeleteRange(1, 30); err == nil {
				t.Fatal("entries were removed that only the damaged snapshot covers")
			}
			mustClose(t, s)

			// After compaction up to the snapshot, the log can't replace it.
			flip(t, path, 5, 4)
			s = mustOpen(t, o)
			must.Do(t, s.Logs().DeleteRange(1, 30))
			mustClose(t, s)
			flip(t, path, 5, 4)
			if _, err := Open(o); err == nil || !strings.Contains(err.Error(), path) {
				t.Fatalf("Open: %v", err)
			}
		})
	}
}

// TestCompactionWaitsForAReadableSnapshot: we should not remove log entries because of an
// unreadable snapshot.
func TestCompactionWaitsForAReadableSnapshot(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, o Options) {
		s := mustOpen(t, o)
		store(t, s, 1, 40, 1)
		id := snapshot(t, s, 30, 1, []byte("state"))
		path := filepath.Join(o.SnapDir, snapDirName, id, snapStateName)
		flip(t, path, 0, 1)
		if err := s.Logs().DeleteRange(1, 30); err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("DeleteRange: %v", err)
		}
		if _, _, err := s.Snapshots().Open(id); err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("Open: %v", err)
		}
		expect(t, s, 1, 40, term(1))
		flip(t, path, 0, 1)
		must.Do(t, s.Logs().DeleteRange(1, 30))
		expect(t, s, 31, 40, term(1))
	})
}

func TestGapAfterTheSnapshot(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, o Options) {
		s := mustOpen(t, o)
		store(t, s, 1, 40, 1)
		snapshot(t, s, 30, 1, []byte("state"))
		must.Do(t, s.Logs().DeleteRange(1, 30))
		mustClose(t, s)
		must.Do(t, os.RemoveAll(filepath.Join(o.SnapDir, snapDirName)))
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "log index 1 is missing") {
			t.Fatalf("Open without the snapshot: %v", err)
		}
	})
}

func TestLostLogBesideSnapshots(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, o Options) {
		s := mustOpen(t, o)
		snapshot(t, s, 30, 1, []byte("state"))
		mustClose(t, s)
		must.Do(t, os.RemoveAll(o.LogDir))
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), o.LogDir) {
			t.Fatalf("Open: %v", err)
		}
	})
}

// TestFailingSnapshotHarmsNothing: the snapshot directory is gone.
func TestFailingSnapshotHarmsNothing(t *testing.T) {
	t.Parallel()
	o := testOptions(t, WAL)
	s := mustOpen(t, o)
	store(t, s, 1, 5, 1)
	k := must.Get(s.Snapshots().Create(1, 3, 1, raft.Configuration{}, 1, nil))(t)
	must.Do(t, os.RemoveAll(o.SnapDir))
	if err := k.Close(); err == nil {
		t.Fatal("a snapshot without a directory was closed")
	}
	if _, err := s.Snapshots().Create(1, 3, 1, raft.Configuration{}, 1, nil); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	store(t, s, 6, 9, 1)
	expect(t, s, 1, 9, term(1))
}
