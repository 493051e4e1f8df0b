//go:build unix

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestEditKeepsALargeText checks that we keep the text from the editor if it is too large for a
// znode.
func TestEditKeepsALargeText(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.try("edit", "-editor", editor(t, `dd if=/dev/null of="$1" bs=1 seek=100000000 2>/dev/null`), "/app/a")
	if err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Fatalf("%v", err)
	}
	_, file, _ := strings.Cut(err.Error(), "your text is in ")
	if info, serr := os.Stat(file); serr != nil || info.Size() < maxValue {
		t.Errorf("%v: %v", err, serr)
	}
	os.RemoveAll(filepath.Dir(file)) //nolint:errcheck // a temporary directory
}

// TestReplaceable checks which files a forced export and a forced backup replace.
func TestReplaceable(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(at("file"), nil, 0o600), os.Symlink("file", at("link")), os.Symlink("nosuch", at("dangling")),
		os.Symlink(os.DevNull, at("null")), syscall.Mkfifo(at("fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"file": "file", "link": "file", "new": "new"} {
		if got, err := Replaceable(at(name)); got != at(want) || err != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{"dangling": "no such file", "null": "is a device", "fifo": "is a FIFO", ".": "is a directory"} {
		if got, err := Replaceable(at(name)); err == nil || !strings.Contains(err.Error(), at(name)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}
