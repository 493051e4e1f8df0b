package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestKeepRemovesTheOldest: --keep should remove only the oldest backups, and no other files.
func TestKeepRemovesTheOldest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	for i, name := range []string{"new.zkb", "a.zkb", "b.zkb", "c.zkb", "old.txt"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(-time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeOlder(2, filepath.Join(dir, "new.zkb")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"a.zkb", "new.zkb", "old.txt"}; !slices.Equal(names, want) {
		t.Errorf("%q are left, not %q", names, want)
	}
	for path, keep := range map[string]int{"-": 1, "zk.backup": 3, "zk.zkb": -1} {
		if checkKeep(keep, path) == nil {
			t.Errorf("--keep %d %s is accepted", keep, path)
		}
	}
	if err := checkKeep(3, "zk.zkb"); err != nil {
		t.Error(err)
	}
}
