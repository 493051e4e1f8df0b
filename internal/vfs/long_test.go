package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestLongReadsAndWrites tests that long reads and writes behave like short ones, up
// to the end of the file.
func TestLongReadsAndWrites(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1000, 1 << 20} {
		f, err := OS{}.OpenFile(filepath.Join(t.TempDir(), "file"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		want := bytes.Repeat([]byte("0123456789"), n/10)
		if k, err := f.WriteAt(want, 0); k != len(want) || err != nil {
			t.Errorf("wrote %d of %d: %v", k, len(want), err)
		}
		if err := f.Sync(); err != nil {
			t.Error(err)
		}
		got := make([]byte, len(want))
		if k, err := f.ReadAt(got, 0); k != len(got) || err != nil || !bytes.Equal(got, want) {
			t.Errorf("read %d of %d: %v", k, len(got), err)
		}
		if k, err := f.ReadAt(got, 7); k != len(got)-7 || !errors.Is(err, io.EOF) || !bytes.Equal(got[:k], want[7:]) {
			t.Errorf("read %d of the last %d: %v", k, len(got)-7, err)
		}
		if _, err := io.ReadFull(f, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("reading from the beginning: %v", err)
		}
		if k, err := f.Read(got); k != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("read %d after the end: %v", k, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		for name, do := range map[string]func() error{
			"WriteAt": func() error { _, err := f.WriteAt(want, 0); return err },
			"ReadAt":  func() error { _, err := f.ReadAt(got, 0); return err },
			"Read":    func() error { _, err := f.Read(got); return err },
			"Sync":    f.Sync,
		} {
			if err := do(); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("%s of %d bytes and a closed file: %v", name, len(want), err)
			}
		}
	}
}
