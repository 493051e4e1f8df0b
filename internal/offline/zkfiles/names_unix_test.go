//go:build unix

package zkfiles

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestSpecialFiles checks that we refuse a device, a FIFO or a large file in place of one
// of ZooKeeper's files, and neither read it nor wait for it.
func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must.Do(t, errors.Join(syscall.Mkfifo(at("fifo"), 0o600), os.Symlink("/dev/zero", at("zero")), os.WriteFile(at("large"), make([]byte, maxSmall+1), 0o600),
		os.WriteFile(at("number"), []byte("7\n"), 0o600)))
	d := Dir{FS: os.DirFS(dir), Name: dir}
	for _, name := range []string{"fifo", "zero", "large"} {
		if n, err := d.epoch(name); n != 0 || !errors.Is(err, ErrNotSmall) || !strings.Contains(err.Error(), at(name)) || !strings.Contains(err.Error(), "64 KiB") {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	if n, err := d.epoch("number"); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := d.epoch("none"); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	must.Do(t, os.Symlink("fifo", at("snapshot.1")))
	if _, err := d.files(snapshotPrefix); err == nil || !strings.Contains(err.Error(), at("snapshot.1")+" is not a regular file") {
		t.Errorf("%v", err)
	}
}
