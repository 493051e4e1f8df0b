package raftlog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/boltlog"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// fillStore opens a store, stores entries 1 to n, and closes it.
func fillStore(t *testing.T, kind Kind, n uint64, segment int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s := must.Get(Open(Options{Kind: kind, Bolt: boltlog.Format{}, LogDir: dir, SnapDir: dir, SegmentBytes: segment}))(t)
	for i := uint64(1); i <= n; i++ {
		must.Do(t, s.Logs().StoreLogs([]*raft.Log{{Index: i, Term: 1, Data: []byte(strings.Repeat("x", 100))}}))
	}
	must.Do(t, s.Close())
	return dir
}

// indexes reads the entries of all files.
func indexes(files []LogFile) (all []uint64, err error) {
	for i := range files {
		for l, err := range files[i].Entries() {
			if err != nil {
				return all, err
			}
			all = append(all, l.Index)
		}
	}
	return all, nil
}

// TestLook: we should read the entries in order from any number of files, without changing
// the files.
func TestLook(t *testing.T) {
	t.Parallel()
	for _, kind := range []Kind{WAL, Bolt} {
		dir := fillStore(t, kind, 100, 4096)
		before := filesBelow(t, dir)
		look, err := LookAtLog(dir, boltlog.Format{})
		files := look.Files
		if err != nil || kind == WAL && len(files) < 2 || kind == Bolt && len(files) != 1 {
			t.Fatalf("%s: %d files, %v", kind, len(files), err)
		}
		all, err := indexes(files)
		if err != nil || len(all) != 100 || all[0] != 1 || all[99] != 100 || files[0].First != 1 || files[len(files)-1].Last != 100 {
			t.Errorf("%s: %v, %v", kind, all, err)
		}
		for l, err := range files[0].Entries() {
			if err != nil || l.Index != 1 {
				t.Error(l, err)
			}
			break // stopping early is not an error
		}
		for name, b := range filesBelow(t, dir) {
			if before[name] != b {
				t.Errorf("%s: %s has changed", kind, name)
			}
		}
	}
	if look, err := LookAtLog(t.TempDir(), nil); err != nil || look.Files != nil {
		t.Errorf("where nothing is: %v, %v", look.Files, err)
	}
}

func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	must.Do(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	}))
	return all
}

// TestLookAtAMissingSegment: the error names the missing file and the log index that it
// contained.
func TestLookAtAMissingSegment(t *testing.T) {
	t.Parallel()
	dir := fillStore(t, WAL, 100, 4096)
	look := must.Get(LookAtLog(dir, boltlog.Format{}))(t)
	must.Do(t, os.Remove(look.Files[1].Path))
	if _, err := LookAtLog(dir, boltlog.Format{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), look.Files[1].Path) || !strings.Contains(err.Error(), "log index") {
		t.Errorf("%v", err)
	}
}

// TestLookAtAnOpenDatabase: we should not report errors beside a running server as damage.
func TestLookAtAnOpenDatabase(t *testing.T) {
	t.Parallel()
	dir := fillStore(t, Bolt, 3, 0)
	f := LogFile{Path: filepath.Join(dir, boltFileName), Kind: Bolt, bolt: boltlog.Format{}}
	odd := errors.New("an odd page")
	if err := f.whileOpen(odd); !errors.Is(err, odd) {
		t.Errorf("%v", err)
	}
	s := must.Get(Open(Options{Bolt: boltlog.Format{}, LogDir: dir, SnapDir: dir}))(t)
	defer s.Close()
	if err := f.whileOpen(odd); !errors.Is(err, errBoltOpen) || !strings.Contains(err.Error(), f.Path) {
		t.Errorf("%v", err)
	}
	if err := f.whileOpen(nil); err != nil {
		t.Error(err)
	}
	look, err := LookAtLog(dir, boltlog.Format{}) // the server writes nothing during this
	if err != nil {
		t.Fatal(err)
	}
	if all, err := indexes(look.Files); err != nil || len(all) != 3 {
		t.Errorf("%v, %v", all, err)
	}
}
