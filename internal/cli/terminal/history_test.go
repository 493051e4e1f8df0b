package terminal

import (
	"path/filepath"
	"slices"
	"testing"
)

func TestLineHistory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history")
	h, err := OpenHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"ls /", "ls /", "addauth digest u:p", "get /a", " ", "ls /b"} {
		h.Add(line)
	}
	again, err := OpenHistory(path)
	if err != nil || !slices.Equal(again.lines, []string{"ls /", "get /a", "ls /b"}) || again.At(0) != "ls /b" {
		t.Errorf("%v %q", err, again.lines)
	}
	s := Search{Lines: again}
	first, _, _ := s.Next("ls")
	second, _, _ := s.Next(first)
	if first != "ls /b" || second != "ls /" {
		t.Errorf("found %q and %q", first, second)
	}
	if _, err := OpenHistory(filepath.Join(path, "not", "there")); err == nil {
		t.Error("a history that cannot be kept is no error")
	}
}
