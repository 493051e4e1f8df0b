package vfs

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"unsafe"
)

func TestBlocks(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, BlockSize - 1, BlockSize, 3*BlockSize + 5} {
		b := Blocks(n)
		if len(b) != 0 || cap(b) < n || cap(b)%BlockSize != 0 {
			t.Errorf("Blocks(%d) has length %d and capacity %d", n, len(b), cap(b))
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(b[:cap(b)]))); cap(b) > 0 && at%BlockSize != 0 {
			t.Errorf("Blocks(%d) is at %x", n, at)
		}
	}
	for _, c := range [][3]int64{{0, 0, 0}, {1, 0, BlockSize}, {BlockSize - 1, 0, BlockSize}, {BlockSize, BlockSize, BlockSize}, {BlockSize + 1, BlockSize, 2 * BlockSize}} {
		if start, end := BlockStart(c[0]), BlockEnd(c[0]); start != c[1] || end != c[2] {
			t.Errorf("the block of %d is from %d to %d, want %d to %d", c[0], start, end, c[1], c[2])
		}
	}
}

// TestWriteDurably writes short and long data at several offsets concurrently, past
// the page cache where possible, and reads it through the page cache.
func TestWriteDurably(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	f, err := OS{}.OpenFile(path, os.O_CREATE|os.O_RDWR|Direct, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var want []byte
	var writers sync.WaitGroup
	for i, n := range []int{BlockSize, 1 << 20, 2 * BlockSize, 64 << 10, 256 << 10} {
		b := append(Blocks(n), bytes.Repeat([]byte{byte(i + 1)}, n)...)
		off := int64(len(want))
		want = append(want, b...)
		writers.Go(func() {
			if err := WriteDurably(f, b, off); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes are not what was written (%d): %v", len(got), len(want), err)
	}
}

// TestWriteFails tests that an error names the file, for every kind of write.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OS{}.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, n := range []int{BlockSize, 1 << 20} {
		var where *fs.PathError
		if err := WriteDurably(f, make([]byte, n), 0); !errors.As(err, &where) || where.Path != path {
			t.Errorf("%d bytes into a file that is only read: %v", n, err)
		}
		if k, err := f.WriteAt(make([]byte, n), 0); k != 0 || !errors.As(err, &where) || where.Path != path || errors.Is(err, fs.ErrClosed) {
			t.Errorf("%d of %d bytes into a file that is only read, not durably: %v", k, n, err)
		}
	}
}
