package raftlog

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/vfs"
)

// SnapshotFile is one snapshot, a directory.
type SnapshotFile struct {
	Dir  string
	Meta raft.SnapshotMeta // size and Raft's state; zero if Err is set
	Err  error             // problem with the metadata
}

// SnapshotFiles returns the snapshots in a directory, newest first.
func SnapshotFiles(snapDir string) (files []SnapshotFile, err error) {
	s := &fileSnapshots{fs: vfs.OS{}, dir: filepath.Join(snapDir, snapDirName)}
	ids, err := s.ids()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, id := range ids {
		f := LookAtSnapshot(filepath.Join(s.dir, id.name))
		if !errors.Is(f.Err, fs.ErrNotExist) { // otherwise it was removed in the meantime
			files = append(files, f)
		}
	}
	return files, err
}

// LookAtSnapshot returns the snapshot in one directory.
func LookAtSnapshot(dir string) SnapshotFile {
	m, err := readSnapMeta(vfs.OS{}, dir)
	if err != nil {
		return SnapshotFile{Dir: dir, Err: err}
	}
	return SnapshotFile{Dir: dir, Meta: m.SnapshotMeta}
}

// Open verifies the checksum of the whole snapshot and returns a reader of its content.
func (f *SnapshotFile) Open() (io.ReadCloser, error) {
	if f.Err != nil {
		return nil, f.Err
	}
	_, r, err := openSnapshot(vfs.OS{}, f.Dir, true)
	return r, err
}
