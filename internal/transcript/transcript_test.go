package transcript

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// echo repeats its arguments, one in each line.
func echo(_ string, args []string) string { return strings.Join(args, "\n") }

func TestReplay(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"unchanged":      {"# about\n\n> say a b\na\nb\n\n> say\n", "# about\n\n> say a b\na\nb\n\n> say\n"},
		"other output":   {"> say a\nb\n\n> say c\nc\n", "> say a\na\n\n> say c\nc\n"},
		"no output":      {"> say a\n", "> say a\na\n"},
		"no end of line": {"> say a", "> say a\na\n"},
		"too much":       {"> say\nb\n# rest\n", "> say\n# rest\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, n := replay(tc.text, echo); got != tc.want || n != strings.Count(tc.text, "> say") {
				t.Errorf("%d commands, %q, want %q", n, got, tc.want)
			}
		})
	}
}

func TestDifference(t *testing.T) {
	t.Parallel()
	got := difference("# about\n\n> say a\nb\n\n> say c\nd\n", "# about\n\n> say a\nb\n\n> say c\nc\n")
	if got != "\nwant\n> say c\nd\n\ngot\n> say c\nc\n" {
		t.Errorf("%q", got)
	}
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "t.txt")
	if err := os.WriteFile(file, []byte("> say a\nold\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Run(file, false, echo); err == nil {
		t.Error("other output is no error")
	}
	if err := Run(file, true, echo); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "> say a\na\n" {
		t.Errorf("%q, %v", b, err)
	}
	if err := Run(file, false, echo); err != nil {
		t.Error(err)
	}
	empty := filepath.Join(t.TempDir(), "empty.txt")
	if err := errors.Join(os.WriteFile(empty, []byte("# nothing\n"), 0o644), Run(empty, true, echo)); err == nil {
		t.Error("a file without commands is no error")
	}
}
