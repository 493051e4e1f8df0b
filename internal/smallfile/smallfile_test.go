package smallfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/zkgo/zkgo/internal/smallfile"
)

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	small, large := filepath.Join(dir, "small"), filepath.Join(dir, "large")
	if err := os.WriteFile(small, []byte("dataDir=/x"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(large)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<40), f.Close()); err != nil { // a sparse file
		t.Fatal(err)
	}
	if b, err := smallfile.Read(small); string(b) != "dataDir=/x" || err != nil {
		t.Errorf("%q %v", b, err)
	}
	if _, err := smallfile.Read(large); !errors.Is(err, smallfile.ErrTooLarge) {
		t.Errorf("a file without an end: %v", err)
	}
	if _, err := smallfile.Read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
