package raftlog

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestSnapshotsPastThePageCache: the position of a snapshot's end relative to the page
// cache limit doesn't affect its content.
func TestSnapshotsPastThePageCache(t *testing.T) {
	t.Parallel()
	const cached = 2 * vfs.BlockSize
	for _, length := range []int{0, 1, cached - 1, cached, cached + 1, 2 * cached, 2*cached + 1, 5*cached - 1, 5 * cached, 1 << 20} {
		past := &pastWatcher{FS: vfs.OS{}}
		o := Options{Kind: WAL, LogDir: t.TempDir(), SnapDir: t.TempDir(), FS: past, CachedSnapshot: cached}
		s := mustOpen(t, o)
		store(t, s, 1, 10, 1)
		state := bytes.Repeat([]byte("0123456789abcdefX"), length/17+1)[:length]
		id := snapshot(t, s, 9, 1, state)
		if err := s.Logs().DeleteRange(1, 5); err != nil { // verifies the snapshot
			t.Errorf("%d bytes: %v", length, err)
		}
		s = reopen(t, s)
		if !bytes.Equal(readState(t, s, id), state) {
			t.Errorf("%d bytes come back as others", length)
		}
		if want := length >= 2*cached; past.written.Load() != want {
			t.Errorf("%d bytes: past the page cache %v, want %v", length, !want, want)
		}
	}
}

// TestSnapshotPastThePageCacheFails: if the disk fails, there is no snapshot, and the log
// survives.
func TestSnapshotPastThePageCacheFails(t *testing.T) {
	t.Parallel()
	for name, past := range map[string]*pastWatcher{
		"open":  {FS: vfs.OS{}, openErr: errIO},
		"write": {FS: vfs.OS{}, writeErr: errIO},
	} {
		o := testOptions(t, WAL)
		o.FS, o.CachedSnapshot = past, vfs.BlockSize
		s := mustOpen(t, o)
		store(t, s, 1, 10, 1)
		k := must.Get(s.Snapshots().Create(1, 9, 1, raft.Configuration{}, 1, nil))(t)
		if _, err := k.Write(make([]byte, 3*vfs.BlockSize)); !errors.Is(err, errIO) {
			t.Errorf("%s: %v", name, err)
		}
		if err := k.Cancel(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Logs().DeleteRange(1, 5); err == nil {
			t.Errorf("%s: the log was shortened without a snapshot", name)
		}
		if all, err := s.Snapshots().List(); err != nil || len(all) > 0 {
			t.Errorf("%s: %v, %v", name, all, err)
		}
		expect(t, reopen(t, s), 1, 10, term(1))
	}
}

// pastWatcher observes, and can fail, the writes of a snapshot that bypass the page
// cache.
type pastWatcher struct {
	vfs.FS
	openErr, writeErr error
	written           atomic.Bool
}

func (p *pastWatcher) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := p.FS.OpenFile(name, flag, perm)
	if err != nil || filepath.Base(name) != snapStateName || flag&os.O_WRONLY == 0 {
		return f, err
	}
	if p.openErr != nil {
		return nil, errors.Join(p.openErr, f.Close())
	}
	return pastFile{f, p}, nil
}

type pastFile struct {
	vfs.File
	p *pastWatcher
}

func (f pastFile) WriteAt(b []byte, off int64) (int, error) {
	f.p.written.Store(true)
	if f.p.writeErr != nil {
		return 0, f.p.writeErr
	}
	return f.File.WriteAt(b, off)
}
