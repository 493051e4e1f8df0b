package inspect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestVerifySnapshotMetadata checks that verify reports a snapshot if its meta.json is missing or
// belongs to another snapshot, in a server's directory and on its own.
func TestVerifySnapshotMetadata(t *testing.T) {
	t.Parallel()
	h := home{name: "standalone"}
	source, _ := h.fill(t)
	snapshots, err := raftlog.SnapshotFiles(source)
	if err != nil || len(snapshots) != 2 {
		t.Fatalf("%d snapshots, %v", len(snapshots), err)
	}
	newest, older := filepath.Base(snapshots[0].Dir), filepath.Base(snapshots[1].Dir)
	for name, c := range map[string]struct {
		damage func(snapshots string) error
		of     string
		want   string
	}{
		"the newest without":   {func(dir string) error { return os.Remove(filepath.Join(dir, newest, metaFile)) }, newest, "meta.json is missing"},
		"an older one without": {func(dir string) error { return os.Remove(filepath.Join(dir, older, metaFile)) }, older, "meta.json is missing"},
		"an empty directory":   {func(dir string) error { return os.Mkdir(filepath.Join(dir, "1-2-3"), 0o700) }, "1-2-3", "meta.json is missing"},
		"that of another snapshot": {func(dir string) error {
			return copyFile(filepath.Join(dir, older, metaFile), filepath.Join(dir, newest, metaFile))
		}, newest, "meta.json: it is of snapshot " + older},
		"under another name": {func(dir string) error { return os.Rename(filepath.Join(dir, newest), filepath.Join(dir, "1-2-3")) }, "1-2-3", "meta.json: it is of snapshot " + newest},
	} {
		dir := t.TempDir()
		must.Do(t, os.CopyFS(dir, os.DirFS(source)))
		must.Do(t, c.damage(filepath.Join(dir, "snapshots")))
		for _, path := range []string{dir, filepath.Join(dir, "snapshots", c.of)} {
			files, err := Verify(Dirs{Data: path})
			found := strings.Join(problems(files), "\n")
			if err != nil || !strings.Contains(found, c.of) || !strings.Contains(found, c.want) {
				t.Errorf("%s: verify %s: %q, %v", name, path, found, err)
			}
		}
	}
	alone := filepath.Join(t.TempDir(), "copy")
	must.Do(t, os.CopyFS(alone, os.DirFS(snapshots[0].Dir)))
	must.Do(t, os.Remove(filepath.Join(alone, metaFile)))
	files, err := Verify(Dirs{Data: alone})
	if found := strings.Join(problems(files), ""); err != nil || !strings.Contains(found, "meta.json is missing") {
		t.Errorf("a copy of the state alone: %q, %v", found, err)
	}
}

// copyFile replaces a file with a copy of another.
func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}
