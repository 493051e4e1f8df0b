package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/storage"
)

// TestSwapIsAllOrNothing stops a swap at each step, and before its start. After Owner,
// all parts belong to the old state, or all to the new one.
func TestSwapIsAllOrNothing(t *testing.T) {
	t.Parallel()
	stop := errors.New("stopped")
	for k := 1; ; k++ {
		dir := t.TempDir()
		s := Swap{Dirs: Dirs{FS: vfs.OS{}, Log: filepath.Join(dir, "log"), Snap: filepath.Join(dir, "snap")}}
		state := func(d Dirs) Identity {
			t.Helper()
			for _, p := range (Swap{Dirs: d}).parts() {
				if p.name == IdentityFile {
					continue
				}
				if err := os.MkdirAll(filepath.Join(p.dir, p.name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(p.dir, p.name, "owner"), []byte(d.Log), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			id := NewIdentity(1)
			if err := id.Write(d.FS, d.Log); err != nil {
				t.Fatal(err)
			}
			return id
		}
		before, after := state(s.Dirs), state(s.Prepared())
		steps, reached := 0, ""
		s.Reached = func(step string) error {
			if steps++; steps == k {
				reached = step
				return stop
			}
			return nil
		}
		_, err := s.Begin(time.Now())
		if err == nil {
			if k < 8 {
				t.Fatalf("%d steps", k-1)
			}
			break
		}
		want, text := after, s.Prepared().Log
		if reached == "journal" {
			want, text = before, s.Log
		}
		if id, err := s.Dirs.Owner(); err != nil || id.Cluster != want.Cluster {
			t.Fatalf("%s: %+v, %v, want %+v", reached, id, err, want)
		}
		for _, p := range s.parts() {
			b, err := os.ReadFile(filepath.Join(p.dir, p.name, "owner"))
			if p.name != IdentityFile && (err != nil || string(b) != text) {
				t.Errorf("%s: %s holds %q, %v", reached, p.name, b, err)
			}
		}
	}
}

// TestTakeEmpty: empty directories are created and locked, and those with any part of a
// state are refused.
func TestTakeEmpty(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := Dirs{FS: vfs.OS{}, Log: filepath.Join(dir, "log"), Snap: filepath.Join(dir, "snap")}
	lock, err := d.TakeEmpty()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.TakeEmpty(); !errors.Is(err, storage.ErrInUse) {
		t.Errorf("while it is locked: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	log, _ := raftlog.Parts()
	for _, name := range append(log, IdentityFile, JournalFile) {
		path := filepath.Join(d.Log, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := d.TakeEmpty(); !errors.Is(err, ErrHasState) {
			t.Errorf("with %s: %v", name, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if lock, err = d.TakeEmpty(); err != nil {
		t.Fatalf("a refusal keeps the lock: %v", err)
	}
	_ = lock.Close()
}
