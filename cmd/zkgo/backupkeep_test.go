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
	if got, want := names(t, dir), []string{"a.zkb", "new.zkb", "old.txt"}; !slices.Equal(got, want) {
		t.Errorf("%q are left, not %q", got, want)
	}
	for path, keep := range map[string]int{"-": 1, "zk.backup": 3, "zk.zkb": -1} {
		if checkKeep(keep, path) == nil {
			t.Errorf("--keep %d %s is accepted", keep, path)
		}
	}
	for _, path := range []string{"zk.zkb", "zk.unverified"} {
		if err := checkKeep(3, path); err != nil {
			t.Error(err)
		}
	}
}

// names returns the names of the files in a directory.
func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestKeepCountsEachExtension: unverified backups and verified ones don't push each other out.
// We remove the rest of an interrupted backup after a day.
func TestKeepCountsEachExtension(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	for i, name := range []string{"new.unverified", "a.unverified", "b.unverified", "a.zkb", "b.zkb", ".c.unverified.1.partial", ".d.unverified.2.partial", "e.partial"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(-time.Duration(i)*4*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeOlder(2, filepath.Join(dir, "new.unverified")); err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, dir), []string{".c.unverified.1.partial", "a.unverified", "a.zkb", "b.zkb", "e.partial", "new.unverified"}; !slices.Equal(got, want) {
		t.Errorf("%q are left, not %q", got, want)
	}
}
