package powerloss

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/lossyfs"
)

// mount mounts an empty disk for a test.
func mount(t *testing.T, f lossyfs.Faults) *lossyfs.Mounted {
	t.Helper()
	m, err := tryMount(t.TempDir(), f)
	if err != nil {
		if os.Getenv("ZKGO_REQUIRE") == "1" {
			t.Fatalf("power loss cannot be tested here: %v", err)
		}
		t.Skipf("power loss cannot be tested here: %v", err)
	}
	t.Cleanup(func() {
		if err := m.Unmount(); err != nil {
			t.Errorf("unmounting %s: %v", m.Dir, err)
		}
	})
	return m
}

func tryMount(dir string, f lossyfs.Faults) (*lossyfs.Mounted, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("mounting takes root")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return nil, err
	}
	return lossyfs.Mount(lossyfs.NewDisk(f), dir)
}

// imageDir returns a directory for disk images: in memory if possible, because
// opening an image fsyncs a lot.
func imageDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "powerloss")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// cuts returns how many of n cuts to make.
func cuts(n, few int) int {
	switch v := os.Getenv("CUTS"); v {
	case "":
		return min(n, few)
	case "all":
		return n
	default:
		if k, err := strconv.Atoi(v); err == nil {
			return min(n, k)
		}
		return min(n, few)
	}
}
