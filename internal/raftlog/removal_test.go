package raftlog

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestCloseWhileARemovalHangs: Close doesn't wait forever.
func TestCloseWhileARemovalHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := testOptions(t, WAL)
		o.FS = holding{vfs.OS{}}
		o.StallLimit = held / 2
		s := mustOpen(t, o)
		store(t, s, 1, 300, 1)
		snapshot(t, s, 290, 1, []byte("state"))
		must.Do(t, s.Logs().DeleteRange(1, 290))
		begin := time.Now()
		if err := s.Close(); err == nil || !strings.Contains(err.Error(), "still being removed") {
			t.Errorf("Close: %v", err)
		}
		if d := time.Since(begin); d > o.StallLimit {
			t.Errorf("Close took %v", d)
		}
		time.Sleep(100 * held) // no goroutine may be left when the test ends
	})
}

// holding is a file system that reads snapshots and removes segments slowly.
type holding struct{ vfs.FS }

const held = time.Second

func (h holding) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := h.FS.OpenFile(name, flag, perm)
	if err != nil || filepath.Base(name) != snapStateName {
		return f, err
	}
	return slowReader{f}, nil
}

func (h holding) Remove(name string) error {
	if strings.HasSuffix(name, segSuffix) {
		time.Sleep(held)
	}
	return h.FS.Remove(name)
}

type slowReader struct{ vfs.File }

func (f slowReader) Read(b []byte) (int, error) {
	time.Sleep(held)
	return f.File.Read(b)
}

// TestSnapshotIsReadWhileItIsRemoved: if a goroutine has an old snapshot open, e.g. to
// send it to a lagging server, it should be able to read it to the end. We should remove
// a snapshot without readers in steps, and it should be gone when the store is closed.
func TestSnapshotIsReadWhileItIsRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := testOptions(t, WAL)
		o.Retain = 1
		s := mustOpen(t, o)
		store(t, s, 1, 4, 1)
		state := bytes.Repeat([]byte("zkgo"), 5<<20)
		old := snapshot(t, s, 1, 1, state)
		_, r, err := s.Snapshots().Open(old)
		if err != nil {
			t.Fatal(err)
		}
		snapshot(t, s, 2, 1, state)
		time.Sleep(time.Second)
		if b, err := io.ReadAll(r); err != nil || !bytes.Equal(b, state) {
			t.Errorf("%d of %d bytes: %v", len(b), len(state), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		snapshot(t, s, 3, 1, state) // replaces one that has no readers
		mustClose(t, s)
		all, err := os.ReadDir(filepath.Join(o.SnapDir, snapDirName))
		if err != nil || len(all) != 1 {
			t.Errorf("snapshots %v, %v", all, err)
		}
	})
}

// TestCompactionDelaysNoWrite: the slow parts of a removal, i.e. reading back the snapshot
// and freeing the segments, should run concurrently with writes. They should be complete
// when the store is closed.
func TestCompactionDelaysNoWrite(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, o Options) {
		synctest.Test(t, func(t *testing.T) {
			o.FS, o.StallLimit = holding{vfs.OS{}}, time.Minute
			s := mustOpen(t, o)
			store(t, s, 1, 300, 1)
			snapshot(t, s, 290, 1, []byte("state"))
			before, _ := segmentNames(vfs.OS{}, filepath.Join(o.LogDir, walDirName))

			removed := make(chan error, 1)
			go func() { removed <- s.Logs().DeleteRange(1, 290) }()
			write := func(index uint64) {
				synctest.Wait() // the removal has reached a slow part
				begin := time.Now()
				store(t, s, index, index, 1)
				if d := time.Since(begin); d != 0 {
					t.Errorf("entry %d was written after %v", index, d)
				}
			}
			write(301)
			time.Sleep(2*held + held/2) // the state, its end, and half of a segment
			write(302)
			must.Do(t, <-removed)
			expect(t, s, 291, 302, term(1))

			mustClose(t, s)
			if after, _ := segmentNames(vfs.OS{}, filepath.Join(o.LogDir, walDirName)); o.Kind == WAL && len(after) >= len(before) {
				t.Errorf("segments %q, and %q after the removal", before, after)
			}
			s = mustOpen(t, o)
			expect(t, s, 291, 302, term(1))
		})
	})
}
