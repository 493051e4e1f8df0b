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

// TestHistoryIsBounded checks that we refuse a history file that is a device, a FIFO or too
// large, and keep no history in /dev/null.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	large, err := os.Create(at("large"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(large.Truncate(1<<40), large.Close(), syscall.Mkfifo(at("fifo"), 0o600), os.Symlink("/dev/zero", at("zero"))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"large": "larger than 16 MiB", "fifo": "is a FIFO, and not a regular file of at most 16 MiB", "zero": "is a device, and not"} {
		h, err := openHistory(at(name))
		if err == nil || !strings.Contains(err.Error(), at(name)) || !strings.Contains(err.Error(), want) || h.Len() != 0 {
			t.Errorf("%s: %v", name, err)
		}
		if h.Add("ls /"); h.Len() != 1 || h.At(0) != "ls /" {
			t.Errorf("%s: a history in memory has %q", name, h.lines)
		}
	}
	if h, err := openHistory(os.DevNull); err != nil || h.file != "" {
		t.Errorf("%s: %v", os.DevNull, err)
	}
}

// TestEditKeepsALargeText checks that we keep the user's text if it is too large for a
// znode.
func TestEditKeepsALargeText(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.try("edit", "-editor", editor(t, `dd if=/dev/null of="$1" bs=1 seek=100000000 2>/dev/null`), "/app/a")
	if err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Fatalf("%v", err)
	}
	_, file, _ := strings.Cut(err.Error(), "what you have written is in ")
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
