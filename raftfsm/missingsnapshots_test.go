package raftfsm

import (
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
)

// fullSnapDir is a file system on which nothing new can be created in dir while full is
// set.
type fullSnapDir struct {
	vfs.FS
	dir     string
	full    atomic.Bool
	refused atomic.Int32
}

func (f *fullSnapDir) Mkdir(name string, perm fs.FileMode) error {
	if f.full.Load() && strings.HasPrefix(name, f.dir) {
		f.refused.Add(1)
		return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOSPC}
	}
	return f.FS.Mkdir(name, perm)
}

// Snapshots that can't be written are logged once, then less and less often, with the
// directory and with what helps, and so is the first one that can be written again.
func TestMissingSnapshotsAreLoggedSeldom(t *testing.T) {
	t.Parallel()
	cfg := diskConfig(t, raftlog.WAL)
	disk, log, clock := &fullSnapDir{FS: vfs.OS{}, dir: cfg.DataDir}, &lines{}, newManualClock()
	cfg.FS, cfg.Log.SnapCount, cfg.Now = disk, 10, clock.now
	log.into(&cfg)
	r := start(t, cfg)
	s := r.attach(time.Hour)
	r.do(create(s, "/a", 0))
	const text = "could not write a snapshot"
	const pause = 10 * time.Second // the first one between two lines
	fail := func(times int32) {
		for until := disk.refused.Load() + times; disk.refused.Load() < until; {
			r.do(set(s, "/a", nil))
		}
	}
	disk.full.Store(true)
	fail(5)
	eventually(t, "the first line", func() bool { return log.count(text) > 0 })
	clock.advance(pause)
	fail(5)
	eventually(t, "the second line", func() bool { return log.count(text) > 1 })
	clock.advance(pause) // the pause is longer now
	fail(5)
	disk.full.Store(false)
	for log.count("writing snapshots works again") == 0 {
		r.do(set(s, "/a", nil))
	}
	if n := log.count(text); n != 2 || log.count("directory="+cfg.DataDir) != 2 || log.count("no space left") != 2 || log.count("level=ERROR") != 0 {
		t.Errorf("logged: %q", log.all)
	}
}
