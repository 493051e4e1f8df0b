package raftfsm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
)

// TestPlaceFilesAreChecked: if any byte of identity.json or ensemble.json changes, or
// either file is truncated, there is an error that names the file and the way out.
func TestPlaceFilesAreChecked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	id := newIdentity(3)
	if err := id.write(vfs.OS{}, dir); err != nil {
		t.Fatal(err)
	}
	held := bootstrap.State{Disk: 77, Taken: true, Ballot: bootstrap.Ballot{}, Bound: &bootstrap.Plan{
		Cluster: quorum.ClusterID{1}, Servers: []bootstrap.Server{{ID: 3, Addr: "a:1"}}, Disks: map[uint64]uint64{3: 77, 4: 8}}}
	if err := bootstrap.Write(vfs.OS{}, dir, held); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() error{
		identityFile:        func() error { _, _, err := readIdentity(vfs.OS{}, dir); return err },
		bootstrap.StateFile: func() error { _, _, err := bootstrap.ReadState(vfs.OS{}, dir); return err },
	} {
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := read(); err != nil {
			t.Fatalf("undamaged: %v", err)
		}
		check := func(what string, at int, b []byte) {
			t.Helper()
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := read(); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "director") {
				t.Errorf("%s: %s at %d: %v", name, what, at, err)
			}
		}
		for at := range len(whole) - 1 { // the final newline doesn't matter
			for _, mask := range []byte{1, 0x20, 0x80} {
				b := slices.Clone(whole)
				b[at] ^= mask
				check("changed", at, b)
			}
			check("cut", at, whole[:at])
		}
	}
}

// TestEmptiedDirectory: a server whose log was removed refuses to start, instead of
// starting afresh under its old identity. ReadPlace reports the same.
func TestEmptiedDirectory(t *testing.T) {
	t.Parallel()
	eachDisk(t, "emptied", func(t *testing.T, cfg Config) {
		used(t, cfg, 3, false)
		parts, _ := raftlog.Parts()
		for _, name := range parts {
			if err := os.RemoveAll(filepath.Join(cfg.LogDir, name)); err != nil {
				t.Fatal(err)
			}
		}
		mustRefuse(t, cfg, cfg.LogDir, identityFile, "is missing", "zkgo recover")
		l, err := raftlog.LookAtLog(cfg.LogDir, cfg.Bolt)
		if err != nil {
			t.Fatal(err)
		}
		p := ReadPlace(cfg.LogDir, &l, nil)
		if len(p.Files) != 1 || p.Files[0].Err == nil || !strings.Contains(p.Files[0].Err.Error(), identityFile) {
			t.Errorf("%+v", p)
		}
	})
}
