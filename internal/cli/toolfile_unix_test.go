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

// TestImportOfSpecialFiles checks that import reads a pipe to its end, but refuses a
// device.
func TestImportOfSpecialFiles(t *testing.T) {
	t.Parallel()
	b := newTold(t, zktest.Run(t))
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	b.do("create /app text")
	text, errs, code := b.do("export /app")
	if code != 0 {
		t.Fatal(errs)
	}
	wrote := make(chan error, 1)
	go func() { wrote <- os.WriteFile(fifo, []byte(text), 0o600) }()
	if _, errs, code := b.do("import -q " + fifo + " /copy"); code != 0 {
		t.Errorf("import of a pipe: %s", errs)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	b.want("get /copy", "text\n", "", 0)
	if _, errs, code := b.do("import -q /dev/zero /zero"); code != 1 || !strings.Contains(errs, "/dev/zero is a device") {
		t.Errorf("import of a device: %d, %s", code, errs)
	}
	if _, errs, code := b.do("reconfig -file /dev/zero"); code != 1 || !strings.Contains(errs, "/dev/zero: it is larger than 16 MiB") {
		t.Errorf("reconfig with a device: %d, %s", code, errs)
	}
}
