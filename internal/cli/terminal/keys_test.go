package terminal

import (
	"context"
	"io"
	"os"
	"testing"
)

// TestAwaitKey checks that q or the end of the context ends the wait, and that later
// input isn't consumed.
func TestAwaitKey(t *testing.T) {
	t.Parallel()
	if !CanAwaitKeys {
		t.Skip("keys cannot be waited for on this system")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	io.WriteString(w, "xq") //nolint:errcheck // the test sees it
	if !AwaitKey(t.Context(), r, "qQ") {
		t.Error("q is not noticed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if AwaitKey(ctx, r, "qQ") {
		t.Error("a key was noticed that was not pressed")
	}
	io.WriteString(w, "ls") //nolint:errcheck // the test sees it
	b := make([]byte, 2)
	if _, err := io.ReadFull(r, b); err != nil || string(b) != "ls" {
		t.Errorf("%q, %v", b, err)
	}
}
