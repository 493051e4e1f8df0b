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

// note writes the process into its lock, for the message of the next one.
func note(f *os.File) {
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0) // a lock without a number is as good
	}
}

// holder says which process has noted itself in a lock, "" if none has.
func holder(f *os.File) string {
	var b [20]byte
	n, _ := f.ReadAt(b[:], 0) // a short read is the usual one
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

// lock keeps other processes, and others in this one, from the same lock. It
// ends with the process. It is tried for a while: a server that was just killed
// may still be going, and a lock that was just given up is still held by a child
// that this process is about to start.
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
			return nil, fmt.Errorf("%s: %w%s: %w", absolute(path), ErrInUse, holder(f), err)
		}
	}
}
