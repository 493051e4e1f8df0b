package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// The error about a relative directory should name it in full: the reader may not know where
// the process was started.
func TestCheckDirectoryNamesIt(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	t.Chdir(dir)
	must.Do(t, os.WriteFile("file", nil, 0o600))
	for _, c := range []struct {
		dir       string
		mustExist bool
		want      string
	}{
		{"./missing/data", false, ""},
		{"./missing", true, filepath.Join(dir, "missing")},
		{"file/data", false, filepath.Join(dir, "file")},
	} {
		err := CheckDirectory("dataDir", c.dir, c.mustExist)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.dir, err, c.want)
		}
	}
	if os.Getuid() <= 0 {
		return // every directory can be written
	}
	must.Do(t, os.Mkdir("foreign", 0o500))
	if err := CheckDirectory("dataDir", "foreign/data", false); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "foreign")) || !strings.Contains(err.Error(), "--data-dir") {
		t.Error(err)
	}
}
