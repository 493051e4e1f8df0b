package chaos

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"
)

// fullDisk is a way to make a server run out of space.
type fullDisk interface {
	kind() string
	fill() error
	says() string   // the server's log message about the fault
	release() error // frees the space; the server has ended
}

// smallDisk gives the server a disk that can be filled.
func (s *scene) smallDisk(m *Member) (fullDisk, error) {
	if os.Geteuid() == 0 {
		if t, err := s.onTmpfs(m); err == nil {
			return t, nil
		} else if !errors.Is(err, errNoMount) {
			return nil, err
		}
	}
	return &sizeLimit{m}, nil
}

var errNoMount = errors.New("a tmpfs cannot be mounted")

// tmpfs is a data directory on a file system in memory.
type tmpfs struct {
	m       *Member
	mounted bool
}

// spare is how much a server may write before the disk is filled.
const spare = 64 << 20

// onTmpfs moves the data of a server to a tmpfs, between a kill and a start.
func (s *scene) onTmpfs(m *Member) (*tmpfs, error) {
	size, err := treeSize(m.Data())
	if err != nil {
		return nil, err
	}
	// We find out whether a mount works before we touch the server.
	probe, err := os.MkdirTemp(m.dir, "mount")
	if err != nil {
		return nil, err
	}
	err = syscall.Mount("tmpfs", probe, "tmpfs", 0, "size=64k")
	if err == nil {
		err = syscall.Unmount(probe, 0)
	}
	if err := errors.Join(err, os.Remove(probe)); err != nil {
		s.logf("no tmpfs: %v", err)
		return nil, errNoMount
	}
	m.Kill()
	kept := m.Data() + ".kept"
	if err := os.Rename(m.Data(), kept); err != nil {
		return nil, err
	}
	t := &tmpfs{m: m}
	if err := os.Mkdir(m.Data(), 0o700); err != nil {
		return nil, err
	}
	if err := syscall.Mount("tmpfs", m.Data(), "tmpfs", 0, fmt.Sprintf("size=%d", size+spare)); err != nil {
		return nil, err
	}
	t.mounted = true
	if err := errors.Join(os.CopyFS(m.Data(), os.DirFS(kept)), os.RemoveAll(kept)); err != nil {
		return t, err
	}
	return t, s.revive(m)
}

func treeSize(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n, err
}

func (t *tmpfs) kind() string { return "tmpfs" }
func (t *tmpfs) says() string { return syscall.ENOSPC.Error() }

func (t *tmpfs) filler() string { return filepath.Join(t.m.Data(), "filler") }

func (t *tmpfs) fill() error {
	f, err := os.Create(t.filler())
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, zeros{}); !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("filling %s: %w", t.m.Data(), err)
	}
	return nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// release moves the data back to the original directory.
func (t *tmpfs) release() error {
	if !t.mounted {
		return nil
	}
	t.m.Kill()
	kept := t.m.Data() + ".kept"
	if err := errors.Join(os.RemoveAll(t.filler()), os.CopyFS(kept, os.DirFS(t.m.Data())), syscall.Unmount(t.m.Data(), 0)); err != nil {
		return err
	}
	t.mounted = false
	return errors.Join(os.Remove(t.m.Data()), os.Rename(kept, t.m.Data()))
}

// sizeLimit makes the file writes of a running server fail with EFBIG.
type sizeLimit struct{ m *Member }

func (*sizeLimit) kind() string   { return "a limit on the size of its files" }
func (*sizeLimit) says() string   { return syscall.EFBIG.Error() }
func (*sizeLimit) release() error { return nil } // a new process has no limit

func (l *sizeLimit) fill() error {
	limit := syscall.Rlimit{Cur: 1, Max: 1}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(l.m.running().PID()),
		syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("limit on the size of files: %w", errno)
	}
	return nil
}
