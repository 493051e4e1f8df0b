package vfs

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestGiveUpProcessor tests that written data is there, whichever writes give up
// their processor. It isn't parallel because the setting is process-wide.
func TestGiveUpProcessor(t *testing.T) {
	defer GiveUpProcessor(LongWrite)
	short, long := []byte("short"), bytes.Repeat([]byte("long"), LongWrite/4)
	for from, want := range map[int][3]bool{0: {true, true, true}, LongWrite: {false, false, true}, math.MaxInt: {}} {
		GiveUpProcessor(from)
		for i, n := range []int{1, LongWrite - 1, LongWrite} {
			if givesUp(n) != want[i] {
				t.Errorf("from %d bytes on, %d give up: %v", from, n, !want[i])
			}
		}
		path := filepath.Join(t.TempDir(), "file")
		f, err := OS{}.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, b := range [][]byte{short, nil, long, short} {
			if err := WriteDurably(f, b, int64(at)); err != nil {
				t.Error(err)
			}
			at += len(b)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, slices.Concat(short, long, short)) {
			t.Errorf("from %d bytes on: %d bytes are there: %v", from, len(got), err)
		}
	}
}

// TestLongWritesGiveUp tests that by default long writes give up the processor.
func TestLongWritesGiveUp(t *testing.T) {
	if givesUp(LongWrite-1) || !givesUp(LongWrite) {
		t.Error("the beginning of long writes is another one")
	}
}
