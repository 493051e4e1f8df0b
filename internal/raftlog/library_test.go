package raftlog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/metadb"

	"github.com/zkgo/zkgo/internal/vfs"
)

// The TestLibrary tests show on the unchanged raft-wal why wal.go replaces its files, and
// that the same course of events is harmless here. If the first part of a test fails, the
// library has been fixed, and we may drop the workaround.

// library opens the unchanged raft-wal. Its Close leaves the meta database open.
func library(t *testing.T, dir string, segment int) (*raftwal.WAL, func()) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	meta := &metadb.BoltMetaDB{}
	w, err := raftwal.Open(dir, raftwal.WithMetaStore(meta), raftwal.WithSegmentSize(segment),
		raftwal.WithLogger(hclog.NewNullLogger()))
	if err != nil {
		t.Fatal(err)
	}
	return w, func() { w.Close(); meta.Close() }
}

// TestLibraryStuckAtTheEndOfASegment simulates a process that is killed after the append
// that fills a segment and before the rotation that follows in the background.
func TestLibraryStuckAtTheEndOfASegment(t *testing.T) {
	t.Parallel()
	t.Run("library", func(t *testing.T) {
		dir := t.TempDir()
		w, closeIt := library(t, filepath.Join(dir, "a"), 2048)
		// Combine the meta database of the empty log with the full segment.
		copyTree(t, filepath.Join(dir, "a"), filepath.Join(dir, "b"))
		var n uint64
		for {
			n++
			if err := w.StoreLog(entry(n, 1)); err != nil {
				t.Fatal(err)
			}
			names, _ := filepath.Glob(filepath.Join(dir, "a", "*.wal"))
			if len(names) > 1 || n > 20 {
				break
			}
		}
		closeIt()
		copySegment(t, filepath.Join(dir, "a"), filepath.Join(dir, "b"))
		w, closeIt = library(t, filepath.Join(dir, "b"), 2048)
		defer closeIt()
		last, _ := w.LastIndex()
		if err := w.StoreLog(entry(last+1, 1)); !errors.Is(err, raftwal.ErrSealed) {
			t.Fatalf("append after the crash: %v, expected it to be stuck", err)
		}
	})
	t.Run("store", func(t *testing.T) {
		o := testOptions(t, WAL)
		o.SegmentBytes = 2048
		s := mustOpen(t, o)
		at := crashed(t, o)
		store(t, s, 1, 40, 1)
		copyFirst(t, filepath.Join(o.LogDir, walDirName), filepath.Join(at.LogDir, walDirName))
		s = mustOpen(t, at)
		last, _ := s.Logs().LastIndex()
		if last < 3 {
			t.Fatalf("the first segment holds up to %d", last)
		}
		store(t, s, last+1, last+40, 1)
		s = reopen(t, s)
		expect(t, s, 1, last+40, term(1))
	})
}

// copySegment copies the oldest segment over the one with the same name.
func copySegment(t *testing.T, from, to string) {
	t.Helper()
	names, _ := filepath.Glob(filepath.Join(from, "*.wal"))
	copyFile(t, names[0], filepath.Join(to, filepath.Base(names[0])))
}

func copyFirst(t *testing.T, from, to string) {
	t.Helper()
	names, err := segmentNames(vfs.OS{}, from)
	if err != nil || len(names) < 2 {
		t.Fatalf("segments %v, %v: want two", names, err)
	}
	copyFile(t, filepath.Join(from, names[0]), filepath.Join(to, names[0]))
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestLibraryUnreadableAfterRemovingTheEnd removes entries from the end, as after a
// conflict with the leader, and restarts the process.
func TestLibraryUnreadableAfterRemovingTheEnd(t *testing.T) {
	t.Parallel()
	t.Run("library", func(t *testing.T) {
		dir := t.TempDir()
		w, closeIt := library(t, dir, 1<<20)
		if err := w.StoreLogs(entries(1, 10, 1)); err != nil {
			t.Fatal(err)
		}
		if err := w.DeleteRange(6, 10); err != nil {
			t.Fatal(err)
		}
		closeIt()
		w, closeIt = library(t, dir, 1<<20)
		defer closeIt()
		err := w.GetLog(3, &raft.Log{})
		if err == nil || !strings.Contains(err.Error(), "no index block") {
			t.Fatalf("GetLog after the restart: %v, expected it to be unreadable", err)
		}
	})
	t.Run("store", func(t *testing.T) {
		s := mustOpen(t, testOptions(t, WAL))
		store(t, s, 1, 10, 1)
		if err := s.Logs().DeleteRange(6, 10); err != nil {
			t.Fatal(err)
		}
		s = reopen(t, s)
		expect(t, s, 1, 5, term(1))
	})
}

// TestLibraryForgetsWhatFollowsDamage flips a byte in the middle of the log.
func TestLibraryForgetsWhatFollowsDamage(t *testing.T) {
	t.Parallel()
	t.Run("library", func(t *testing.T) {
		dir := t.TempDir()
		w, closeIt := library(t, dir, 1<<20)
		for i := uint64(1); i <= 10; i++ {
			if err := w.StoreLog(entry(i, 1)); err != nil {
				t.Fatal(err)
			}
		}
		closeIt()
		names, _ := filepath.Glob(filepath.Join(dir, "*.wal"))
		flip(t, names[0], 32, 0x40) // the type of the first frame
		w, closeIt = library(t, dir, 1<<20)
		defer closeIt()
		if last, err := w.LastIndex(); last != 0 || err != nil {
			t.Fatalf("last index %d, %v: expected an empty log without a word", last, err)
		}
	})
	t.Run("store", func(t *testing.T) {
		o := testOptions(t, WAL)
		s := mustOpen(t, o)
		store(t, s, 1, 10, 1)
		o = crashed(t, o) // without the floor that Close records
		names, _ := segmentNames(vfs.OS{}, filepath.Join(o.LogDir, walDirName))
		path := filepath.Join(o.LogDir, walDirName, names[0])
		flip(t, path, segHeaderLen, 0x40)
		_, err := Open(o)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "log index 1 ") {
			t.Fatalf("Open: %v", err)
		}
	})
}

// TestRotationBeforeRemovingTheEnd removes entries from the end while a full segment waits
// for its rotation.
func TestRotationBeforeRemovingTheEnd(t *testing.T) {
	t.Parallel()
	o := testOptions(t, WAL)
	o.SegmentBytes = 512
	s := mustOpen(t, o)
	for n := uint64(1); n < 60; n += 2 { // nearly every append fills a segment
		for _, l := range []*raft.Log{entry(n, 1), entry(n+1, 1), entry(n+2, 1)} {
			if err := s.Logs().StoreLog(l); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Logs().DeleteRange(n+2, n+2); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, s, 1, 60, term(1))
	s = reopen(t, s)
	expect(t, s, 1, 60, term(1))
}

func flip(t *testing.T, path string, at int64, mask byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= mask
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}
