package disk

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Not parallel: it is about the whole process.
func TestGiveUpProcessor(t *testing.T) {
	GiveUpProcessor(true)
	defer GiveUpProcessor(false)
	path := filepath.Join(t.TempDir(), "file")
	f, err := OS{}.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, s := range []string{"short", "", " writes"} {
		if err := WriteDurably(f, []byte(s), int64(len("short")*min(i, 1))); err != nil {
			t.Error(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, []byte("short writes")) {
		t.Errorf("%q is there: %v", got, err)
	}
}
