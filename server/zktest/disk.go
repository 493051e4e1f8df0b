package zktest

import (
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/zkgo/zkgo/internal/vfs"
)

// FillDisk has no space left on the disk of the server: the next write to it
// fails. From then on the server acknowledges nothing and serves nobody, as
// after every error of its disk, and a leader loses its lead. heal makes space;
// the server is of use again when it is killed and restarted. It takes OnDisk.
func (s *Server) FillDisk() (heal func()) {
	s.t.Helper()
	return s.spoilDisk("FillDisk", "the disk is full", syscall.ENOSPC)
}

// FailFsync has the disk of the server fail: what it is told to make durable may
// be lost. What follows is the same as with FillDisk. It takes OnDisk.
func (s *Server) FailFsync() (heal func()) {
	s.t.Helper()
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
		s.gate.log("the disk is in order again")
		s.disk.set(0, nil)
	}
}

// faultyDisk is a disk that can be full, fail, and stand still.
type faultyDisk struct {
	vfs.FS

	mu     sync.Mutex
	errno  syscall.Errno // ENOSPC: writes fail; any other: what makes things durable
	struck func()        // tells that it has happened, once
	still  chan struct{} // closed when the disk goes on; nil: it works
	spoilt bool          // something has failed: the server will not end in peace
}

func (d *faultyDisk) set(errno syscall.Errno, struck func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.errno, d.struck = errno, struck
}

// stop makes everybody wait who uses the disk, or lets them go on.
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

// hasFailed reports whether an error was given to the server.
func (d *faultyDisk) hasFailed() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.spoilt
}

// writes returns why nothing can be written, durable why nothing can be made
// durable. Both wait while the disk stands still.
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
		go d.struck() // nobody waits for a test's log here
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
