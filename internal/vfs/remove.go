package vfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// freeStep is how many bytes of a file RemoveInSteps frees at a time.
const freeStep = 4 << 20

// shrinker is a File that can be made shorter.
type shrinker interface {
	Truncate(size int64) error
	// sole says whether the file with this state has no other name.
	sole(st fs.FileInfo) bool
}

// RemoveInSteps removes a file that nobody has open, or a directory of such files.
// What a large one occupies is freed piece by piece, from its end, and rest is called
// after each with what it took: whether to go on like that. Where not, or where that
// cannot be, as with a file that has another name, it is removed in one go.
//
// A file system that tells the disk what is no longer used (mount option discard) does
// so in a removal, and lets all other writes to the disk wait meanwhile: those behind
// a file of 32 MiB for 6 ms.
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

// free frees all of a file but its first step, if it can. If something is wrong with
// it, its removal says so.
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
