package zkfiles

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Prefixes of the file names, before a dot and a zxid.
const (
	snapshotPrefix = "snapshot"
	logPrefix      = "log"
)

// versionDir is the subdirectory of a data directory that contains ZooKeeper's files.
const versionDir = "version-2"

// zxidOf returns the zxid in a file name as ZooKeeper parses it, or −1 if the name
// doesn't have the prefix.
func zxidOf(name, prefix string) int64 {
	parts := strings.Split(name, ".")
	if len(parts) < 2 || parts[0] != prefix {
		return -1
	}
	zxid, err := strconv.ParseInt(parts[1], 16, 64)
	if err != nil {
		return -1
	}
	return zxid
}

// file is a ZooKeeper file.
type file struct {
	fs   fs.FS
	name string // in fs
	path string // for messages
	zxid int64  // in the name
	size int64
}

// open opens the file. Its errors contain the full path, which package fs doesn't
// know.
func (f *file) open() (fs.File, error) {
	r, err := f.fs.Open(f.name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, cause(err))
	}
	return r, nil
}

// cause removes the file name that package fs adds to an error.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Dir is a ZooKeeper data directory, or the directory version-2 in it.
type Dir struct {
	FS   fs.FS  // e.g. from os.DirFS
	Name string // for messages
}

// inside returns the directory that contains the files.
func (d Dir) inside() (Dir, error) {
	info, err := fs.Stat(d.FS, versionDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d, nil
	case err != nil:
		return d, fmt.Errorf("%s: %w", d.join(versionDir), cause(err))
	case !info.IsDir():
		return d, nil
	}
	sub, err := fs.Sub(d.FS, versionDir)
	return Dir{sub, d.join(versionDir)}, err
}

func (d Dir) join(name string) string { return strings.TrimRight(d.Name, "/") + "/" + name }

// files returns the files with the prefix, ordered by the zxids in their names.
func (d Dir) files(prefix string) ([]*file, error) {
	entries, err := fs.ReadDir(d.FS, ".")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name, cause(err))
	}
	var found []*file
	for _, e := range entries {
		zxid := zxidOf(e.Name(), prefix)
		if zxid < 0 || e.IsDir() {
			continue
		}
		f := &file{fs: d.FS, name: e.Name(), path: d.join(e.Name()), zxid: zxid}
		info, err := fs.Stat(d.FS, e.Name()) // follow symbolic links
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, cause(err))
		}
		if !info.Mode().IsRegular() { // e.g. a FIFO, for which Open would wait
			return nil, fmt.Errorf("%s is not a regular file (%v)", f.path, info.Mode())
		}
		f.size = info.Size()
		found = append(found, f)
	}
	slices.SortFunc(found, func(a, b *file) int { return cmp.Or(cmp.Compare(a.zxid, b.zxid), cmp.Compare(a.name, b.name)) })
	return found, nil
}

// epoch reads one of the files in which a member of an ensemble stores an epoch. It
// returns 0 if there is none.
func (d Dir) epoch(name string) (int64, error) {
	b, err := d.ReadSmall(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || n < 0 || n > 1<<31-1 {
		return 0, fmt.Errorf("%s: %q is not an epoch", d.join(name), b)
	}
	return n, nil
}

// maxSmall is the size in bytes of the largest file that ReadSmall accepts.
const maxSmall = 64 << 10

// ErrNotSmall is the cause when ReadSmall refuses a file.
var ErrNotSmall = errors.New("not a regular file of at most 64 KiB")

// ReadSmall returns the content of a file that contains a number, e.g. myid. It refuses a larger
// file and a special file, such as a FIFO or a link to a device.
func (d Dir) ReadSmall(name string) ([]byte, error) {
	info, err := fs.Stat(d.FS, name) // before Open, which would wait for a FIFO's writer
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxSmall) {
		err = ErrNotSmall
	}
	var b []byte
	if err == nil {
		b, err = d.readSmall(name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.join(name), cause(err))
	}
	return b, nil
}

func (d Dir) readSmall(name string) ([]byte, error) {
	f, err := d.FS.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	b, err := io.ReadAll(io.LimitReader(f, maxSmall+1))
	if err == nil && len(b) > maxSmall {
		return nil, ErrNotSmall
	}
	return b, err
}
