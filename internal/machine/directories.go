package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// CheckDirectory reports why this process could not keep data in a directory: it is a file,
// can't be written or created, or is missing although it must exist. key is the setting that
// names it. CheckDirectory creates nothing. Its error names the directory in full: a relative
// one depends on where the process was started.
func CheckDirectory(key, dir string, mustExist bool) error {
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && mustExist:
			return fmt.Errorf("%s: %s is missing and is not created because of datadir.autocreate=false; is its volume mounted?", key, at)
		case errors.Is(err, fs.ErrNotExist) && filepath.Dir(at) != at:
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", key, err)
		case !info.IsDir():
			return fmt.Errorf("%s: %s is a file, want a directory", key, at)
		}
		if err := writable(at, true); err != nil {
			return fmt.Errorf("%s: this process, which runs as user %d, cannot write to %s: %w; change its owner, or choose another directory with %s", key, os.Getuid(), at, err, option(key))
		}
		return nil
	}
}

// option names the setting and, if there is one, the flag that choose a directory.
func option(key string) string {
	if key == "dataDir" {
		return "--data-dir or dataDir"
	}
	return key
}

// CheckFile reports why this process could not open or create a file for writing. key is the
// setting that names it.
func CheckFile(key, path string) error {
	file := path
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		file = filepath.Dir(file)
		info, err = os.Stat(file)
		if err == nil && !info.IsDir() {
			return fmt.Errorf("%s: %s is not a directory", key, file)
		}
	case err == nil && info.IsDir():
		return fmt.Errorf("%s: %s is a directory, want a file", key, file)
	}
	if err == nil {
		err = writable(file, info.IsDir())
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w; create its directory, or choose another file", key, path, err)
	}
	return nil
}

// DirSize returns the total size of the files below dir that can be read.
func DirSize(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
