//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestBackupForce checks that --force replaces a symlink's target, and only regular files.
// We use a FIFO in place of a device.
func TestBackupForce(t *testing.T) {
	t.Parallel()
	admin, dir := live(t, t.TempDir()), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := syscall.Mkfifo(at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"link": "old", "to-fifo": "fifo", "dangling": "nosuch"} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"fifo": "not a regular file", "to-fifo": "not a regular file", ".": "not a regular file", "dangling": "no such file"} {
		if _, _, err := zkgo(t, "backup", "--auth", "digest:root:pw", "--force", "--from", admin, at(name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if info, err := os.Lstat(at("fifo")); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("the FIFO: %v, %v", info, err)
	}
	for _, name := range []string{"link", "new"} {
		if _, _, err := zkgo(t, "backup", "--auth", "digest:root:pw", "--force", "--from", admin, at(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if target, err := os.Readlink(at("link")); target != "old" {
		t.Errorf("the symlink: %q, %v", target, err)
	}
	for _, name := range []string{"old", "new"} {
		if info, err := os.Stat(at(name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 6 {
		t.Errorf("left: %v, %v", left, err)
	}
}
