package zktest

import (
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/zkgo/zkgo/internal/vfs"
)

// FillDisk makes the server's disk full: the next write to it fails. As after any disk
// error, the server then acknowledges no request and serves no client, and a leader steps
// down. heal frees the space, but the test should also kill and restart the server, because
// it stays unusable until then. FillDisk requires OnDisk.
func (s *Server) FillDisk() (heal func()) {
	s.t.Helper()
	s.inProcess(needsFaults)
	return s.spoilDisk("FillDisk", "the disk is full", syscall.ENOSPC)
}

// FailFsync makes fsync fail on the server's disk, so writes may be lost. The consequences
// are the same as with FillDisk. FailFsync requires OnDisk.
func (s *Server) FailFsync() (heal func()) {
	s.t.Helper()
	s.inProcess(needsFaults)
	return s.spoilDisk("FailFsync", "fsync fails", syscall.EIO)
}

func (s *Server) spoilDisk(method, what string, errno syscall.Errno) func() {
	s.t.Helper()
	if s.disk == nil {
		s.fatalf("%s: the server has no disk; run it with OnDisk", method)
	}
	s.gate.log("planned: %s", what)
	s.disk.set(errno, func() { s.gate.log("%s", what) })
	return func() {
		s.gate.log("the disk works again")
		s.disk.set(0, nil)
	}
}

// faultyDisk is a file system that can be full, fail, and hang.
type faultyDisk struct {
	vfs.FS

	mu     sync.Mutex
	errno  syscall.Errno // ENOSPC: writes fail; any other: fsync fails
	struck func()        // reports the first failure, once
	still  chan struct{} // closed when the disk resumes; nil: it doesn't hang
	spoilt bool          // an operation has failed, so the server won't close cleanly
}

func (d *faultyDisk) set(errno syscall.Errno, struck func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.errno, d.struck = errno, struck
}

// stop makes all users of the disk block, or lets them continue.
func (d *faultyDisk) stop(still bool) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case still && d.still == nil:
		d.still = make(chan struct{})
	case !still && d.still != nil:
		close(d.still)
		d.still = nil
	}
}

// hasFailed reports whether the server got an error from the disk.
func (d *faultyDisk) hasFailed() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.spoilt
}

// writes returns the error for a write, durable the error for an fsync. Both block
// while the disk hangs.
func (d *faultyDisk) writes() error  { return d.err(true) }
func (d *faultyDisk) durable() error { return d.err(false) }

func (d *faultyDisk) err(write bool) error {
	d.mu.Lock()
	for d.still != nil {
		still := d.still
		d.mu.Unlock()
		<-still
		d.mu.Lock()
	}
	defer d.mu.Unlock()
	if d.errno == 0 || (d.errno == syscall.ENOSPC) != write {
		return nil
	}
	d.spoilt = true
	if d.struck != nil {
		go d.struck() // we must not block on the test's log here
		d.struck = nil
	}
	return d.errno
}

// OpenFile implements vfs.FS.
func (d *faultyDisk) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if flag&(os.O_CREATE|os.O_TRUNC) != 0 {
		if err := d.writes(); err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
	f, err := d.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return faultyFile{f, d, name}, nil
}

// Mkdir implements vfs.FS.
func (d *faultyDisk) Mkdir(name string, perm fs.FileMode) error {
	if err := d.writes(); err != nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: err}
	}
	return d.FS.Mkdir(name, perm)
}

// SyncDir implements vfs.FS.
func (d *faultyDisk) SyncDir(name string) error {
	if err := d.durable(); err != nil {
		return &fs.PathError{Op: "fsync", Path: name, Err: err}
	}
	return d.FS.SyncDir(name)
}

// Commit implements vfs.FS.
func (d *faultyDisk) Commit(name string, f func() error) error {
	for _, err := range []error{d.writes(), d.durable()} {
		if err != nil {
			return &fs.PathError{Op: "commit", Path: name, Err: err}
		}
	}
	return d.FS.Commit(name, f)
}

type faultyFile struct {
	vfs.File
	d    *faultyDisk
	name string
}

func (f faultyFile) fails(op string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: f.name, Err: err}
}

// Write implements vfs.File.
func (f faultyFile) Write(b []byte) (int, error) {
	if err := f.d.writes(); err != nil {
		return 0, f.fails("write", err)
	}
	return f.File.Write(b)
}

// WriteAt implements vfs.File.
func (f faultyFile) WriteAt(b []byte, at int64) (int, error) {
	if err := f.d.writes(); err != nil {
		return 0, f.fails("write", err)
	}
	return f.File.WriteAt(b, at)
}

// Sync implements vfs.File.
func (f faultyFile) Sync() error {
	if err := f.d.durable(); err != nil {
		return f.fails("fsync", err)
	}
	return f.File.Sync()
}

// Datasync implements vfs.File.
func (f faultyFile) Datasync() error {
	if err := f.d.durable(); err != nil {
		return f.fails("fsync", err)
	}
	return f.File.Datasync()
}
