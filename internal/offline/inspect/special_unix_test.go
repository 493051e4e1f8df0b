//go:build unix

package inspect

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestVerifySpecialFiles checks that verify reports a device or a FIFO in place of a small
// file or of a log, and neither waits for it nor reads it.
func TestVerifySpecialFiles(t *testing.T) {
	t.Parallel()
	h := home{name: "member", member: true}
	source, _ := h.fill(t)
	snapshots, err := filepath.Glob(filepath.Join(source, "snapshots", "*", metaFile))
	if err != nil || len(snapshots) == 0 {
		t.Fatalf("%v, %v", snapshots, err)
	}
	meta, err := filepath.Rel(source, snapshots[0])
	must.Do(t, err)
	for name, bound := range map[string]string{"myid": "64 KiB", "identity.json": "16 MiB", "recovery.json": "16 MiB", meta: "16 MiB", "log.100000001": "not a regular file"} {
		for _, special := range []string{"/dev/zero", "fifo"} {
			dir := t.TempDir()
			must.Do(t, os.CopyFS(dir, os.DirFS(source)))
			must.Do(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
			if special == "fifo" {
				special = filepath.Join(dir, "fifo")
			}
			path := filepath.Join(dir, name)
			must.Do(t, os.RemoveAll(path))
			must.Do(t, os.Symlink(special, path))
			files, err := Verify(Dirs{Data: dir})
			found := strings.Join(problems(files), "\n")
			if err != nil || !strings.Contains(found, path) || !strings.Contains(found, bound) {
				t.Errorf("%s is a link to %s: %q, %v", name, special, found, err)
			}
		}
	}
}
