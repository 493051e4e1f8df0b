package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/internal/raftlog"
)

// The files of a zkgo snapshot.
const (
	metaFile  = "meta.json"
	stateFile = "state.bin"
)

// snapshotName matches the name of a zkgo snapshot's directory: term, index, time.
var snapshotName = regexp.MustCompile(`^\d+-\d+-\d+$`)

// isZkgoSnapshot reports whether dir looks like a zkgo snapshot, also if a file is
// missing from it.
func isZkgoSnapshot(dir string) bool {
	for _, name := range []string{metaFile, stateFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return snapshotName.MatchString(filepath.Base(dir)) && !isDir(filepath.Join(dir, "snapshots"))
}

// bareSnapshots returns the directories of snapshots that have no meta.json. A server
// renames a snapshot to its final name only when both files are in it, and renames it back
// before it removes them, so in such a directory a file was lost.
func bareSnapshots(d Dirs, known []raftlog.SnapshotFile) ([]File, error) {
	dir := filepath.Join(d.Data, "snapshots")
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	var files []File
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !e.IsDir() || !snapshotName.MatchString(e.Name()) || slices.ContainsFunc(known, func(s raftlog.SnapshotFile) bool { return s.Dir == path }) {
			continue
		}
		s := raftlog.LookAtSnapshot(path)
		if errors.Is(s.Err, fs.ErrNotExist) && isDir(path) { // otherwise it was removed or written just now
			f := File{Path: path, Format: FormatZkgo, Kind: "snapshot"}
			f.finish(path, noMeta(path))
			files = append(files, f)
		}
	}
	return files, nil
}

// noMeta returns the error of a snapshot without a meta.json.
func noMeta(dir string) error {
	return fmt.Errorf("%s: %s is missing, which has the snapshot's index, ensemble and checksum", dir, metaFile)
}

// belongs returns an error if a snapshot's meta.json belongs to another snapshot. We have
// already checked that the name in it is the directory's.
func belongs(s *raftlog.SnapshotFile) error {
	if prefix := fmt.Sprintf("%d-%d-", s.Meta.Term, s.Meta.Index); !strings.HasPrefix(s.Meta.ID, prefix) {
		return fmt.Errorf("%s: it does not belong to this directory: it is of term %d and index %d", filepath.Join(s.Dir, metaFile), s.Meta.Term, s.Meta.Index)
	}
	return nil
}
