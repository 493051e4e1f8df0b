package vfs

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// large creates a file that is freed in several steps.
func large(t *testing.T, path string) []byte {
	t.Helper()
	b := bytes.Repeat([]byte("zkgo"), (2*freeStep+freeStep/2)/4)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRemoveInSteps tests that a large file is freed from its end, with a call of rest
// after each step, and that a small file, or one with another name, is removed in one step.
func TestRemoveInSteps(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files are removed in one go: nobody says whether one has another name")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	var sizes []int64
	watch := func(time.Duration) bool {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, st.Size())
		return true
	}
	gone := func(what string, steps ...int64) {
		t.Helper()
		if found, err := Exists(OS{}, path); found || err != nil {
			t.Errorf("%s is still there: %v", what, err)
		}
		if len(sizes) != len(steps) {
			t.Errorf("%s went by way of %d bytes, want %d", what, sizes, steps)
			return
		}
		for i := range steps {
			if sizes[i] != steps[i] {
				t.Errorf("%s went by way of %d bytes, want %d", what, sizes, steps)
			}
		}
		sizes = nil
	}
	remove := func(name string, rest func(time.Duration) bool) {
		t.Helper()
		if err := RemoveInSteps(OS{}, name, rest); err != nil {
			t.Error(err)
		}
	}

	large(t, path)
	remove(path, watch)
	gone("a large file", freeStep+freeStep/2, freeStep/2)

	large(t, path)
	remove(path, func(d time.Duration) bool { watch(d); return false })
	gone("a file that is wanted away", freeStep+freeStep/2)

	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	remove(path, watch)
	gone("a small file")

	content := large(t, path)
	other := filepath.Join(dir, "b")
	if err := os.Link(path, other); err != nil {
		t.Fatal(err)
	}
	remove(path, watch)
	gone("a file with two names")
	if b, err := os.ReadFile(other); err != nil || !bytes.Equal(b, content) {
		t.Errorf("under its other name it has %d of %d bytes: %v", len(b), len(content), err)
	}

	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(sub, "state")
	large(t, path)
	if err := os.Symlink(other, filepath.Join(sub, "link")); err != nil {
		t.Fatal(err)
	}
	remove(sub, watch)
	gone("a file in a directory", freeStep+freeStep/2, freeStep/2)
	if b, err := os.ReadFile(other); err != nil || !bytes.Equal(b, content) {
		t.Errorf("of the file that a link leads to, %d of %d bytes are left: %v", len(b), len(content), err)
	}
	if err := RemoveInSteps(OS{}, sub, watch); !os.IsNotExist(err) {
		t.Errorf("what is not there: %v", err)
	}
}
