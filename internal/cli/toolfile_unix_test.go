//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zkgo/zkgo/server/zktest"
)

// TestExportReplacesNoFIFO checks that a forced export replaces only a regular file,
// also through a symbolic link.
func TestExportReplacesNoFIFO(t *testing.T) {
	t.Parallel()
	b := newTold(t, zktest.Run(t))
	dir := t.TempDir()
	fifo, link := filepath.Join(dir, "fifo.json"), filepath.Join(dir, "link.json")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(fifo, link); err != nil {
		t.Fatal(err)
	}
	b.do("create /app")
	for _, name := range []string{fifo, link} {
		for _, force := range []string{"", "-force "} {
			if _, errs, code := b.do("export " + force + "-f " + name + " /app"); code != 1 || !strings.Contains(errs, name+" is a FIFO") {
				t.Errorf("export %s-f %s: %q, %d", force, name, errs, code)
			}
		}
	}
	if info, err := os.Lstat(fifo); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the FIFO: %v, %v", info, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link: %v, %v", info, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
