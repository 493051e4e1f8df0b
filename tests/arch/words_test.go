package arch

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// words are those of translated English: native engineers hardly use them in comments.
// A sentence that needs one has no subject, or not the one it is about.
var words = regexp.MustCompile(`(?i)\b(nobody|somebody|everybody|whoever|whom|whomever|mended)\b`)

// plain lists the packages whose comments are held to the words, and the pages of docs.
// All others are still to be rewritten.
var plain = []string{"proto", "tree", "session", "watch", "client", "recipes/...", "raftfsm", "internal/...", "server/...", "cmd/...", "deploy/...", "tests/..."}

var plainPages = []string{
	"README.md", "docs/README.md", "docs/architecture.md", "docs/comparison.md", "docs/ensemble-sasl.md", "docs/ensemble-tls.md", "docs/ensemble.md", "docs/glossary.md", "docs/locks.md", "docs/operations.md", "docs/reads.md", "docs/recovery.md", "docs/reliability-sim.md", "docs/reliability.md",
	"docs/security.md", "docs/testing.md", "docs/troubleshooting.md", "CONTRIBUTING.md",
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
	for _, page := range plainPages {
		text, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
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
