package sim

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/tests/kit/lossyfs"
)

// volume is the file system of one process: an in-memory disk that knows which writes would survive
// a power cut. The faults of its drive apply until the process has died; after that it continues
// without effect, because a goroutine cannot be killed.
type volume struct {
	d     *drive
	mem   *lossyfs.Disk
	bases *databases
}

var _ vfs.FS = (*volume)(nil)

func pathError(op, name string, errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: errno}
}

// walk returns the directory that contains name, and the last element of name.
func (v *volume) walk(name string) (dir lossyfs.ID, base string, errno syscall.Errno) {
	dir = lossyfs.Root
	parts := strings.Split(strings.Trim(filepath.Clean(name), "/"), "/")
	for _, p := range parts[:len(parts)-1] {
		id, isDir, ok := v.mem.Lookup(dir, p)
		switch {
		case !ok:
			return 0, "", syscall.ENOENT
		case !isDir:
			return 0, "", syscall.ENOTDIR
		}
		dir = id
	}
	return dir, parts[len(parts)-1], 0
}

// find returns the node that name refers to.
func (v *volume) find(name string) (id lossyfs.ID, isDir bool, errno syscall.Errno) {
	dir, base, errno := v.walk(name)
	if errno != 0 {
		return 0, false, errno
	}
	if base == "" {
		return lossyfs.Root, true, 0
	}
	id, isDir, ok := v.mem.Lookup(dir, base)
	if !ok {
		return 0, false, syscall.ENOENT
	}
	return id, isDir, 0
}

// change performs an operation that changes the disk. A power cut may happen
// before and after it.
func (v *volume) change(op lossyfs.Op) (lossyfs.ID, syscall.Errno) {
	if errno := v.d.allow(v, op); errno != 0 {
		return 0, errno
	}
	v.d.moment(v)
	id, errno := v.mem.Do(op)
	v.d.moment(v)
	return id, errno
}

// OpenFile implements vfs.FS.
func (v *volume) OpenFile(name string, flag int, _ fs.FileMode) (vfs.File, error) {
	dir, base, errno := v.walk(name)
	if errno != 0 {
		return nil, pathError("open", name, errno)
	}
	id, isDir, ok := v.mem.Lookup(dir, base)
	switch {
	case isDir:
		return nil, pathError("open", name, syscall.EISDIR)
	case ok && flag&os.O_EXCL != 0:
		return nil, pathError("open", name, syscall.EEXIST)
	case !ok && flag&os.O_CREATE == 0:
		return nil, pathError("open", name, syscall.ENOENT)
	case !ok:
		if id, errno = v.change(lossyfs.Op{Kind: lossyfs.Create, Node: dir, Name: base}); errno != 0 {
			return nil, pathError("open", name, errno)
		}
	}
	f := &file{v: v, id: id, name: name}
	if flag&os.O_TRUNC != 0 {
		if _, errno := v.change(lossyfs.Op{Kind: lossyfs.Truncate, Node: id}); errno != 0 {
			return nil, pathError("open", name, errno)
		}
	}
	return f, v.bases.pull(v, id)
}

// ReadDir implements vfs.FS.
func (v *volume) ReadDir(name string) ([]fs.DirEntry, error) {
	id, isDir, errno := v.find(name)
	if errno == 0 && !isDir {
		errno = syscall.ENOTDIR
	}
	if errno != 0 {
		return nil, pathError("open", name, errno)
	}
	var list []fs.DirEntry
	for _, n := range v.mem.Names(id) {
		if to, isDir, ok := v.mem.Lookup(id, n); ok {
			list = append(list, fs.FileInfoToDirEntry(v.info(n, to, isDir)))
		}
	}
	return list, nil
}

// Mkdir implements vfs.FS.
func (v *volume) Mkdir(name string, _ fs.FileMode) error {
	dir, base, errno := v.walk(name)
	if errno == 0 {
		_, errno = v.change(lossyfs.Op{Kind: lossyfs.Mkdir, Node: dir, Name: base})
	}
	return pathError("mkdir", name, errno)
}

// Stat implements vfs.FS.
func (v *volume) Stat(name string) (fs.FileInfo, error) {
	id, isDir, errno := v.find(name)
	if errno != 0 {
		return nil, pathError("stat", name, errno)
	}
	return v.info(filepath.Base(name), id, isDir), nil
}

// Rename implements vfs.FS.
func (v *volume) Rename(from, to string) error {
	dir, base, errno := v.walk(from)
	todir, tobase, errno2 := v.walk(to)
	if errno == 0 && errno2 == 0 {
		_, errno = v.change(lossyfs.Op{Kind: lossyfs.Rename, Node: dir, Name: base, To: todir, Name2: tobase})
	}
	return pathError("rename", from, max(errno, errno2))
}

// Remove implements vfs.FS.
func (v *volume) Remove(name string) error {
	dir, base, errno := v.walk(name)
	if errno == 0 {
		_, errno = v.change(lossyfs.Op{Kind: lossyfs.Remove, Node: dir, Name: base})
	}
	return pathError("remove", name, errno)
}

// RemoveAll implements vfs.FS.
func (v *volume) RemoveAll(name string) error {
	id, isDir, errno := v.find(name)
	if errno == syscall.ENOENT {
		return nil
	}
	if isDir {
		for _, n := range v.mem.Names(id) {
			if err := v.RemoveAll(filepath.Join(name, n)); err != nil {
				return err
			}
		}
	}
	return v.Remove(name)
}

// SyncDir implements vfs.FS.
func (v *volume) SyncDir(name string) error {
	id, _, errno := v.find(name)
	if errno == 0 {
		errno = v.sync(lossyfs.Op{Kind: lossyfs.FsyncDir, Node: id}, false)
	}
	return pathError("fsync", name, errno)
}

// sync makes data durable. If slow is set, as for log and vote, it is slow. All other files are
// written under locks, and no goroutine can wait for a lock in fake time.
func (v *volume) sync(op lossyfs.Op, slow bool) syscall.Errno {
	v.d.moment(v)
	if errno := v.d.fsync(v, slow); errno != 0 {
		return errno
	}
	_, errno := v.mem.Do(op)
	v.d.moment(v)
	return errno
}

// Lock implements vfs.FS: no other process uses this volume.
func (v *volume) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Database implements vfs.FS.
func (v *volume) Database(name string) (path string, lazy bool, err error) {
	dir, base, errno := v.walk(name)
	if errno != 0 {
		return "", false, pathError("open", name, errno)
	}
	id, errno := v.change(lossyfs.Op{Kind: lossyfs.Create, Node: dir, Name: base})
	if errno != 0 {
		return "", false, pathError("open", name, errno)
	}
	path, err = v.bases.path(v, id)
	return path, true, err
}

// Commit implements vfs.FS.
func (v *volume) Commit(name string, f func() error) error {
	id, _, errno := v.find(name)
	if errno != 0 {
		return pathError("write", name, errno)
	}
	return v.bases.commit(v, id, name, f)
}

func (v *volume) info(name string, id lossyfs.ID, isDir bool) fs.FileInfo {
	i := info{name: name, dir: isDir}
	if !isDir {
		i.size = v.mem.Size(id)
	}
	return i
}

// info describes a file.
type info struct {
	name string
	size int64
	dir  bool
}

func (i info) Name() string     { return i.name }
func (i info) Size() int64      { return i.size }
func (info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool      { return i.dir }
func (info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o750
	}
	return 0o640
}

// file is an open file.
type file struct {
	v    *volume
	id   lossyfs.ID
	name string
	off  int64 // of Read and Write; only one goroutine uses them
}

// ReadAt implements vfs.File.
func (f *file) ReadAt(b []byte, off int64) (int, error) {
	n := f.v.mem.ReadAt(f.id, b, off)
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Read implements vfs.File.
func (f *file) Read(b []byte) (int, error) {
	n := f.v.mem.ReadAt(f.id, b, f.off)
	f.off += int64(n)
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// WriteAt implements vfs.File.
func (f *file) WriteAt(b []byte, off int64) (int, error) {
	_, errno := f.v.change(lossyfs.Op{Kind: lossyfs.Write, Node: f.id, Off: off, Data: b})
	if errno != 0 {
		return 0, pathError("write", f.name, errno)
	}
	return len(b), nil
}

// Write implements vfs.File.
func (f *file) Write(b []byte) (int, error) {
	n, err := f.WriteAt(b, f.off)
	f.off += int64(n)
	return n, err
}

// Seek implements vfs.File.
func (f *file) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		off += f.off
	case io.SeekEnd:
		off += f.v.mem.Size(f.id)
	}
	f.off = off
	return off, nil
}

// Sync implements vfs.File.
func (f *file) Sync() error { return f.sync(false) }

// Datasync implements vfs.File.
func (f *file) Datasync() error { return f.sync(true) }

func (f *file) sync(slow bool) error {
	if err := f.v.bases.pull(f.v, f.id); err != nil {
		return err
	}
	return pathError("fsync", f.name, f.v.sync(lossyfs.Op{Kind: lossyfs.Fsync, Node: f.id}, slow))
}

// Stat implements vfs.File.
func (f *file) Stat() (fs.FileInfo, error) {
	return f.v.info(filepath.Base(f.name), f.id, false), nil
}

// Close implements vfs.File: it makes nothing durable.
func (f *file) Close() error { return nil }
