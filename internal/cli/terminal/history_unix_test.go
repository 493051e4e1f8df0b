//go:build unix

package terminal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestHistoryIsBounded checks that a history file that is a device, a FIFO or too large is
// refused, and that no history is kept in /dev/null.
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
		h, err := OpenHistory(at(name))
		if err == nil || !strings.Contains(err.Error(), at(name)) || !strings.Contains(err.Error(), want) || h.Len() != 0 {
			t.Errorf("%s: %v", name, err)
		}
		if h.Add("ls /"); h.Len() != 1 || h.At(0) != "ls /" {
			t.Errorf("%s: a history in memory has %q", name, h.lines)
		}
	}
	if h, err := OpenHistory(os.DevNull); err != nil || h.file != "" {
		t.Errorf("%s: %v", os.DevNull, err)
	}
}
