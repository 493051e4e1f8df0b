package datadir

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
)

// TestPlaceFilesAreChecked: if any byte of identity.json or ensemble.json changes, or
// either file is truncated, there is an error that names the file and the way out.
func TestPlaceFilesAreChecked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	id := NewIdentity(3)
	if err := id.Write(vfs.OS{}, dir); err != nil {
		t.Fatal(err)
	}
	held := bootstrap.State{Disk: 77, Taken: true, Ballot: bootstrap.Ballot{}, Bound: &bootstrap.Plan{
		Cluster: quorum.ClusterID{1}, Servers: []bootstrap.Server{{ID: 3, Addr: "a:1"}}, Disks: map[uint64]uint64{3: 77, 4: 8}}}
	if err := bootstrap.Write(vfs.OS{}, dir, held); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() error{
		IdentityFile:        func() error { _, _, err := ReadIdentity(vfs.OS{}, dir); return err },
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
