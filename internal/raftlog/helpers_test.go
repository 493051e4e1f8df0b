package raftlog

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm/boltlog"
	"github.com/zkgo/zkgo/tests/kit/must"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// patience is far longer than any step on a loaded machine.
const patience = 30 * time.Second

// bothKinds runs a test on each kind of log store.
func bothKinds(t *testing.T, f func(t *testing.T, o Options)) {
	for _, k := range []Kind{WAL, Bolt} {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			f(t, testOptions(t, k))
		})
	}
}

// tempDir returns a directory in memory if the machine has one: these tests fsync a lot,
// and other tests cover the effect of fsync.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "raftlog")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// testOptions returns options with small segments, and a cache of a single entry, so that
// reads come from disk.
func testOptions(t *testing.T, k Kind) Options {
	dir := tempDir(t)
	return Options{
		Kind: k, Bolt: boltlog.Format{}, LogDir: filepath.Join(dir, "log"), SnapDir: filepath.Join(dir, "snap"),
		CacheBytes: 1, SegmentBytes: 4096,
	}
}

func mustOpen(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func mustClose(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

func reopen(t *testing.T, s *Store) *Store {
	t.Helper()
	mustClose(t, s)
	return mustOpen(t, s.opts)
}

// entry returns the entry at an index: the same index and term give the same entry.
func entry(index, term uint64) *raft.Log {
	rng := rand.New(rand.NewPCG(index, term))
	data := make([]byte, 1+rng.IntN(300))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return &raft.Log{
		Index: index, Term: term, Type: raft.LogType(index % 3), Data: data,
		AppendedAt: time.Unix(1700000000, int64(index)),
	}
}

func entries(lo, hi, term uint64) []*raft.Log {
	var all []*raft.Log
	for i := lo; i <= hi; i++ {
		all = append(all, entry(i, term))
	}
	return all
}

// store appends lo to hi in batches of one to five.
func store(t *testing.T, s *Store, lo, hi, term uint64) {
	t.Helper()
	for all := entries(lo, hi, term); len(all) > 0; {
		n := min(len(all), 1+int(all[0].Index%5))
		if err := s.Logs().StoreLogs(all[:n]); err != nil {
			t.Fatalf("StoreLogs from %d: %v", all[0].Index, err)
		}
		all = all[n:]
	}
}

func sameEntry(got, want *raft.Log) error {
	if got.Index != want.Index || got.Term != want.Term || got.Type != want.Type ||
		!bytes.Equal(got.Data, want.Data) || !got.AppendedAt.Equal(want.AppendedAt) {
		return fmt.Errorf("entry %d differs: got %+v, want %+v", want.Index, got, want)
	}
	return verifySeal(got)
}

// expect verifies that the log is exactly lo to hi, with termOf giving the term.
func expect(t *testing.T, s *Store, lo, hi uint64, termOf func(uint64) uint64) {
	t.Helper()
	first, err1 := s.Logs().FirstIndex()
	last, err2 := s.Logs().LastIndex()
	if err1 != nil || err2 != nil || first != lo || last != hi {
		t.Fatalf("log is %d to %d (%v, %v), want %d to %d", first, last, err1, err2, lo, hi)
	}
	for i := lo; i <= hi && i > 0; i++ {
		var l raft.Log
		if err := s.Logs().GetLog(i, &l); err != nil {
			t.Fatalf("GetLog(%d): %v", i, err)
		}
		must.Do(t, sameEntry(&l, entry(i, termOf(i))))
	}
	var l raft.Log
	if err := s.Logs().GetLog(hi+1, &l); err != raft.ErrLogNotFound {
		t.Fatalf("GetLog(%d) after the end: %v", hi+1, err)
	}
}

func term(n uint64) func(uint64) uint64 { return func(uint64) uint64 { return n } }

// snapshot writes a snapshot that ends at index.
func snapshot(t *testing.T, s *Store, index, term uint64, state []byte) string {
	t.Helper()
	conf := raft.Configuration{Servers: []raft.Server{{ID: "1", Address: "a:1"}}}
	k := must.Get(s.Snapshots().Create(1, index, term, conf, 1, nil))(t)
	must.Get(k.Write(state))(t)
	must.Do(t, k.Close())
	return k.ID()
}

// copyTree copies the files that a process would leave behind if it were killed now.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	must.Do(t, os.CopyFS(to, os.DirFS(from)))
}

// crashed returns options for a copy of the store's directories as they are now.
func crashed(t *testing.T, o Options) Options {
	t.Helper()
	dir := tempDir(t)
	copyTree(t, filepath.Dir(o.LogDir), dir)
	o.LogDir, o.SnapDir = filepath.Join(dir, "log"), filepath.Join(dir, "snap")
	return o
}

// firstSegment returns the path of the oldest file of a log of kind WAL.
func firstSegment(t *testing.T, o Options) string {
	t.Helper()
	dir := filepath.Join(o.LogDir, walDirName)
	names, err := segmentNames(vfs.OS{}, dir)
	if err != nil || len(names) == 0 {
		t.Fatalf("segments in %s: %q, %v", dir, names, err)
	}
	return filepath.Join(dir, names[0])
}

func readState(t *testing.T, s *Store, id string) []byte {
	t.Helper()
	_, r, err := s.Snapshots().Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b := must.Get(io.ReadAll(r))(t)
	return b
}

func flip(t *testing.T, path string, at int64, mask byte) {
	t.Helper()
	f := must.Get(os.OpenFile(path, os.O_RDWR, 0))(t)
	defer f.Close()
	var b [1]byte
	must.Get(f.ReadAt(b[:], at))(t)
	b[0] ^= mask
	must.Get(f.WriteAt(b[:], at))(t)
}

// lastTail returns the end of the last segment, once the segment has been started.
func lastTail(t *testing.T, s *Store) *tail {
	t.Helper()
	w := s.engine.(*wal)
	must.Do(t, w.next.wait())
	return w.segments[len(w.segments)-1].tail
}

// logLines collects the log output.
func logLines() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, nil)), &b
}
