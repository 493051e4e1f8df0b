package raftfsm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/logreader"
)

// The inspection of a log and its snapshots works next to the server that writes them,
// and shows the replies of its clients.
func TestLookingBesideARunningServer(t *testing.T) {
	t.Parallel()
	eachDisk(t, "look", func(t *testing.T, cfg Config) {
		r := start(t, cfg)
		s := r.attach(time.Hour)
		var want []int64
		for _, path := range []string{"/a", "/a/b", "/a", "/c"} { // the third one is refused
			want = append(want, r.do(create(s, path, 0)).zxid)
		}
		entries, state := lookAt(t, cfg)
		var got []int64
		var refused int
		for _, e := range entries {
			if !e.Known || e.Skipped {
				t.Errorf("%+v", e)
			}
			for _, tx := range e.Transactions {
				if tx.Op != proto.OpCreate2 {
					continue
				}
				got = append(got, tx.Zxid)
				if tx.Code == proto.ErrNodeExists && tx.Path == "/a" {
					refused++
				}
				if tx.Session != s.ID || !strings.HasPrefix(tx.Path, "/") {
					t.Errorf("%+v", tx)
				}
			}
		}
		if !slices.Equal(got, want) || refused != 1 {
			t.Errorf("zxids %x, want %x; %d refused", got, want, refused)
		}
		if dumpOf(t, state) != r.dump() {
			t.Error("the log leads to another state than the server has")
		}

		if err := r.Snapshot(); err != nil {
			t.Fatal(err)
		}
		snaps, err := raftlog.SnapshotFiles(cfg.DataDir)
		if err != nil || len(snaps) != 1 {
			t.Fatalf("%v, %v", snaps, err)
		}
		read, err := ReadSnapshot(snaps[0].Dir)
		if err != nil || dumpOf(t, read) != r.dump() || read.Sessions.Len() != 1 || read.Index != snaps[0].Meta.Index {
			t.Errorf("%+v, %v", read, err)
		}
		r.do(create(s, "/d", 0))
		if _, state = lookAt(t, cfg); dumpOf(t, state) != r.dump() {
			t.Error("snapshot and log lead to another state than the server has")
		}
	})
}

// A log that doesn't reach back to the beginning is followed from the snapshot.
func TestLookFromASnapshot(t *testing.T) {
	t.Parallel()
	eachDisk(t, "after", func(t *testing.T, cfg Config) {
		tr, table, s := elsewhere()
		if err := cfg.Seed(tr, table); err != nil {
			t.Fatal(err)
		}
		r := start(t, cfg)
		o := r.reattach(s)
		made := r.do(create(o.attached, "/new", 0))
		entries, state := lookAt(t, cfg)
		if entries[0].Index != 2 || !entries[0].Known || dumpOf(t, state) != r.dump() {
			t.Errorf("%+v: the log leads to another state than the server has", entries[0])
		}
		last := entries[len(entries)-1].Transactions
		if len(last) != 1 || last[0].Zxid != made.zxid || last[0].Path != "/new" {
			t.Errorf("%+v", last)
		}
	})
}

func lookAt(t *testing.T, cfg Config) ([]Entry, *State) {
	t.Helper()
	var all []Entry
	state, err := cfg.ReadLog(func(e *Entry) error { all = append(all, *e); return nil })
	if err != nil || state == nil {
		t.Fatal(state, err)
	}
	return all, state
}

func dumpOf(t *testing.T, s *State) string {
	t.Helper()
	var b strings.Builder
	if err := s.Tree.Dump(&b); err != nil {
		t.Fatal(err)
	}
	b.Write(s.Sessions.AppendTo(nil))
	return b.String()
}

// Damage is reported with the file and the place.
func TestLookingAtDamage(t *testing.T) {
	t.Parallel()
	eachDisk(t, "damage", func(t *testing.T, cfg Config) {
		r := start(t, cfg)
		s := r.attach(time.Hour)
		secret := "/needle-in-the-log"
		r.do(create(s, secret, 0))
		r.do(create(s, "/after", 0))
		if err := r.Snapshot(); err != nil {
			t.Fatal(err)
		}
		r.close()
		flipText(t, cfg.Log.Dir, secret)
		logs, err := raftlog.LookAtLog(cfg.Log.Dir, cfg.Log.Bolt)
		if err == nil {
			_, err = logreader.ReadEntries(logs.Files, nil, func(*Entry) error { return nil })
		}
		if err == nil || !strings.Contains(err.Error(), cfg.Log.Dir) || !strings.Contains(err.Error(), "index") {
			t.Errorf("the log: %v", err)
		}
		flipText(t, filepath.Join(cfg.DataDir, "snapshots"), secret)
		snaps, err := raftlog.SnapshotFiles(cfg.DataDir)
		if err != nil || len(snaps) != 1 {
			t.Fatal(err)
		}
		if _, err := ReadSnapshot(snaps[0].Dir); err == nil || !strings.Contains(err.Error(), snaps[0].Dir) {
			t.Errorf("the snapshot: %v", err)
		}
	})
}

// flipText flips a bit in the file below dir that contains text.
func flipText(t *testing.T, dir, text string) {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		at := strings.Index(string(b), text)
		if at < 0 {
			return nil
		}
		found = true
		b[at+1] ^= 1
		return os.WriteFile(path, b, 0o600)
	})
	if err != nil || !found {
		t.Fatalf("%q in %s: found %v, %v", text, dir, found, err)
	}
}
