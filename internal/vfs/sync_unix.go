//go:build unix

package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/zkgo/zkgo/storage"
)

const lockPatience = time.Second

// syncDir makes the entries of a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// sole implements shrinker.
func (f osFile) sole(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && sys.Nlink == 1
}

// note writes the process id into the lock file, for the error message of the next
// process.
func note(f *os.File) {
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0) // the lock works anyway
	}
}

// holder returns a text with the process id in a lock file, "" if there is none.
func holder(f *os.File) string {
	var b [20]byte
	n, _ := f.ReadAt(b[:], 0) // a short read is normal
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}

func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// lock locks the file at path against other processes and other callers in this one. The
// lock ends with the process. We retry for a while: a server that was just killed may not
// have ended yet, and a child process that this process is starting may still have
// inherited a lock that was just released.
func lock(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(lockPatience / 50) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			note(f)
			return f, nil
		}
		if time.Now().After(deadline) {
			defer f.Close()
			return nil, fmt.Errorf("%s: %w%s: %w", absolute(path), storage.ErrInUse, holder(f), err)
		}
	}
}
