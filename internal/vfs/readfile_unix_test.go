//go:build unix

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReadFileIsBounded checks that ReadFile neither fills the memory nor waits: it
// refuses a device, a FIFO, a directory and a file that is too large.
func TestReadFileIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	large, err := os.Create(at("large"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(large.Truncate(1<<40), large.Close(), // a sparse file
		os.WriteFile(at("small"), []byte("content"), 0o600), os.Symlink("small", at("link")),
		syscall.Mkfifo(at("fifo"), 0o600), os.Symlink("fifo", at("to-fifo")), os.Symlink("/dev/zero", at("zero"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"small", "link"} {
		if b, err := ReadFile(OS{}, at(name)); string(b) != "content" || err != nil {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	for _, name := range []string{"large", "fifo", "to-fifo", "zero", "."} {
		b, err := ReadFile(OS{}, at(name))
		if len(b) > 0 || !errors.Is(err, ErrNotSmall) || !strings.Contains(err.Error(), at(name)) || !strings.Contains(err.Error(), "16 MiB") {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	if _, err := ReadFile(OS{}, at("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
