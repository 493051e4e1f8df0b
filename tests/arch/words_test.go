package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// words are those of translated English: native engineers hardly use them in comments.
// A sentence that needs one has no subject, or not the one it is about.
var words = regexp.MustCompile(`(?i)\b(nobody|somebody|everybody|whoever|whom|whomever|mended)\b`)

// plain lists the packages whose comments are checked for the words.
var plain = []string{"proto", "tree", "session", "watch", "client", "recipes/...", "raftfsm/...", "internal/...", "server/...", "cmd/...", "deploy/...", "tests/..."}

// pages returns the pages of docs and of the root. The recorded hours quote messages of
// old versions.
func pages(t *testing.T) []string {
	t.Helper()
	found := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	err := filepath.WalkDir("../../docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" && d.Name() != "reliability-hours.md" {
			found = append(found, filepath.ToSlash(strings.TrimPrefix(path, "../../")))
		}
		return err
	})
	if err != nil || len(found) < 30 {
		t.Fatalf("%d pages: %v", len(found), err)
	}
	return found
}

func TestPlainWords(t *testing.T) {
	t.Parallel()
	for _, f := range sources(t) {
		if !matches(plain, f.pkg) {
			continue
		}
		for _, c := range f.comments {
			if strings.Contains(c.text, "utput:") { // of an example: what it prints
				continue
			}
			for i, line := range strings.Split(c.text, "\n") {
				if w := words.FindString(line); w != "" {
					t.Errorf("%s:%d: %q in a comment: name the subject (%s)", f.path, c.line+i, w, strings.TrimSpace(line))
				}
			}
		}
	}
	for _, page := range pages(t) {
		text := must.Get(os.ReadFile("../../" + page))(t)
		example := false
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				example = !example
			}
			if w := words.FindString(line); w != "" && !example {
				t.Errorf("%s:%d: %q: name the subject", page, i+1, w)
			}
		}
	}
}
