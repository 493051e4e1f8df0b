package vfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// freeStep is the number of bytes of a file that RemoveInSteps frees at a time.
const freeStep = 4 << 20

// shrinker is a File that can be made shorter.
type shrinker interface {
	Truncate(size int64) error
	// sole reports whether the file with this state has no other name.
	sole(st fs.FileInfo) bool
}

// RemoveInSteps removes a file that is not open anywhere, or a directory of such files.
// It frees a large file piece by piece from the end, and calls rest after each piece with
// the piece's duration. rest reports whether to continue in steps. If it returns false,
// or if we can't free the file in steps, e.g. because it has another hard link, we remove
// it in one step.
//
// A file system with the mount option discard tells the disk which blocks are no longer
// used. It does so during the removal, and all other writes to the disk wait until the
// end of the removal: 6 ms for a file of 32 MiB.
func RemoveInSteps(fsys FS, path string, rest func(worked time.Duration) bool) error {
	st, err := fsys.Stat(path)
	if err != nil {
		return err
	}
	if st.Mode().IsRegular() {
		free(fsys, path, rest)
		return fsys.Remove(path)
	}
	if st.IsDir() {
		all, err := fsys.ReadDir(path)
		if err != nil {
			return err
		}
		for _, e := range all {
			if e.Type().IsRegular() {
				free(fsys, filepath.Join(path, e.Name()), rest)
			}
		}
	}
	return fsys.RemoveAll(path)
}

// free frees all of a file except its first step, if it can. It ignores errors,
// because the removal reports them.
func free(fsys FS, path string, rest func(worked time.Duration) bool) {
	f, err := fsys.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer f.Close()
	s, ok := f.(shrinker)
	if !ok {
		return
	}
	st, err := f.Stat()
	if err != nil || !s.sole(st) {
		return
	}
	for left := st.Size() - freeStep; left > 0; left -= freeStep {
		begin := time.Now()
		if s.Truncate(left) != nil || !rest(time.Since(begin)) {
			return
		}
	}
}
