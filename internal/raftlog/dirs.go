package raftlog

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"

	"github.com/zkgo/zkgo/internal/vfs"
)

// This file defines which files of a store may be in a directory.

// boltFileName is the file of a log of kind Bolt in the log directory.
const boltFileName = "raft.bolt"

// kindsIn reports which kinds of logs are in a directory.
func kindsIn(fsys vfs.FS, dir string) (isWAL, isBolt bool, err error) {
	isWAL, err = vfs.Exists(fsys, filepath.Join(dir, walDirName, metaName))
	if err == nil {
		isBolt, err = vfs.Exists(fsys, filepath.Join(dir, boltFileName))
	}
	return isWAL, isBolt, err
}

// chooseKind refuses to create an empty log next to a log of another kind, because the
// old log also contains the vote.
func chooseKind(fsys vfs.FS, dir string, want Kind) (Kind, error) {
	isWAL, isBolt, err := kindsIn(fsys, dir)
	if err != nil {
		return "", err
	}
	var have Kind
	switch {
	case isWAL && isBolt:
		return "", fmt.Errorf("%s contains logs of both kinds, %s and %s: remove the obsolete one", dir, WAL, Bolt)
	case isWAL:
		have = WAL
	case isBolt:
		have = Bolt
	}
	if have != "" && want != "" && have != want {
		return "", fmt.Errorf("%s holds a log of kind %s, not %s", dir, have, want)
	}
	return cmp.Or(have, want, WAL), nil
}

// refuseLostLog returns an error if there are snapshots but no log. A log always exists
// before the first snapshot, and if we created an empty log, we would lose the vote.
func refuseLostLog(o Options) error {
	isWAL, isBolt, err := kindsIn(o.FS, o.LogDir)
	if isWAL || isBolt || err != nil {
		return err
	}
	found, err := HasState(o.FS, filepath.Join(o.LogDir, "none"), o.SnapDir)
	if err == nil && found {
		err = errLogMissing(o.SnapDir, o.LogDir)
	}
	return err
}

func errLogMissing(snapDir, logDir string) error {
	return fmt.Errorf("%s holds snapshots, but the log that belongs to them is missing from %s", snapDir, logDir)
}

func errGap(file, snapDir string, first, snap uint64) error {
	return fmt.Errorf("%s: log index %d is missing: the log begins at %d, the newest snapshot in %s ends at %d",
		file, snap+1, first, snapDir, snap)
}

// HasState reports whether the directories contain files of a store: a log, even an empty
// one, or a snapshot. To find out whether Raft ever wrote to it, call
// raft.HasExistingState on the open store. A nil fsys is vfs.OS.
func HasState(fsys vfs.FS, logDir, snapDir string) (bool, error) {
	if fsys == nil {
		fsys = vfs.OS{}
	}
	for _, path := range []string{filepath.Join(logDir, walDirName), filepath.Join(logDir, boltFileName)} {
		if found, err := vfs.Exists(fsys, path); found || err != nil {
			return found, err
		}
	}
	dir := filepath.Join(snapDir, snapDirName)
	if found, err := vfs.Exists(fsys, dir); !found || err != nil {
		return false, err
	}
	ids, err := (&fileSnapshots{fs: fsys, dir: dir}).ids()
	return len(ids) > 0, err
}

// HasLog reports whether a directory contains a log, even an empty one. A nil fsys is
// vfs.OS.
func HasLog(fsys vfs.FS, logDir string) (bool, error) {
	if fsys == nil {
		fsys = vfs.OS{}
	}
	isWAL, isBolt, err := kindsIn(fsys, logDir)
	return isWAL || isBolt, err
}

// lockName is the file in the log directory that only one process at a time can lock.
const lockName = "lock"

// Parts returns the names of a store's files and directories in the log directory and in
// the snapshot directory. To move a store to another place, move these while no process
// has it open.
func Parts() (log, snap []string) {
	return []string{walDirName, boltFileName}, []string{snapDirName}
}

// Lock prevents stores from opening a log directory until the lock is closed. It fails
// while a store is open, because the store holds the same lock.
func Lock(fsys vfs.FS, logDir string) (io.Closer, error) {
	return fsys.Lock(filepath.Join(logDir, lockName))
}
