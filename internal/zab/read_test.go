package zab

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
)

// TestReadUpTo: we read up to the last byte, the end is no error, and a length alone needs no
// memory.
func TestReadUpTo(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, readStep - 1, readStep, readStep + 1, 5*readStep + 7} {
		want := bytes.Repeat([]byte{7}, size)
		for _, n := range []int{size, size + 1, size + readStep + 1} {
			b, err := ReadUpTo(bytes.NewReader(want), n)
			if err != nil || !bytes.Equal(b, want) {
				t.Errorf("%d of %d bytes: %d, %v", n, size, len(b), err)
			}
		}
		r := bytes.NewReader(append(bytes.Clone(want), 8))
		if b, err := ReadUpTo(r, size); err != nil || len(b) != size || r.Len() != 1 {
			t.Errorf("%d bytes: %d and %d left, %v", size, len(b), r.Len(), err)
		}
	}
	wrong := errors.New("broken")
	if b, err := ReadUpTo(io.MultiReader(strings.NewReader("abc"), failing{wrong}), 9); !errors.Is(err, wrong) || b != nil {
		t.Errorf("%q %v", b, err)
	}
}

// TestReadUpToAllocates: a length of a GiB before three bytes allocates a MiB.
func TestReadUpToAllocates(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if b, err := ReadUpTo(strings.NewReader("abc"), 1<<30); err != nil || string(b) != "abc" {
		t.Errorf("%q %v", b, err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4*readStep {
		t.Errorf("%d bytes", n)
	}
}

// failing is a reader that fails.
type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) { return 0, f.err }
