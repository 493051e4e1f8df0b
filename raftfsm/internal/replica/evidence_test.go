package replica

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
)

// TestEvidence: there is one file, and its size is bounded.
func TestEvidence(t *testing.T) {
	t.Parallel()
	in := func(dir string) *Replica {
		return &Replica{cfg: Config{Dirs: datadir.Dirs{FS: vfs.OS{}, Log: dir, Snap: dir}}}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, divergenceFile)
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	endless := func(w io.Writer) error {
		for {
			if _, err := w.Write(chunk); err != nil {
				return err
			}
		}
	}
	if got := in(dir).keepEvidence(endless); got != "its state is in "+path {
		t.Error(got)
	}
	if got := in(dir).keepEvidence(endless); !strings.Contains(got, "first seen") || !strings.Contains(got, path) {
		t.Error(got)
	}
	st, err := os.Stat(path)
	if err != nil || st.Size() < maxDivergenceFile || st.Size() > maxDivergenceFile+100 || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if got := (&Replica{cfg: Config{Memory: true}}).keepEvidence(endless); !strings.Contains(got, "no directory") {
		t.Error(got)
	}
	if got := in(filepath.Join(dir, "gone")).keepEvidence(endless); !strings.Contains(got, "could not") {
		t.Error(got)
	}
}
