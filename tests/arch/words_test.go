package arch

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// phrases are typical of translated English: native engineers hardly use them in comments. A
// sentence that needs one has no subject, or not the one it is about. Words may be separated by a
// line break.
var phrases = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b(nobody|somebody|everybody|whoever|whom|whomever|mended)\b`),
	regexp.MustCompile(`(?i)(^|[.;:(] ?|\b(and|but|or|that|to|of|for|by|from|with|than|as|says|knows)\s+)who\b`),     // a client that …
	regexp.MustCompile(`(?i)\b(waits?|waiting|waited|queued?|queues|comes?|came|stands?|stood|arrives?)\s+behind\b`), // after
	regexp.MustCompile(`(?i)\bbehind\s+(it|them|him|one\s+another|each\s+other)\b`),                                  // after
	regexp.MustCompile(`(?i)\bheld\s+against\b`),                                                                     // checked
	regexp.MustCompile(`(?i)\b((is|are|was|were)\s+founded|stays?\s+away|broken\s+by\s+hand|other\s+than\s+(there|here))\b`),
	regexp.MustCompile(`(?i)\bcomes?\s+back\s+at\s+once\b`),                                                   // immediately
	regexp.MustCompile(`(?i)\bwhat\s+(waits|is\s+due|comes\s+(next|after|behind|first))`),                     // the requests queued after it
	regexp.MustCompile(`(?i)\b(is|are|was|were)\s+(that|those)\s+of\b`),                                       // the state belongs to …
	regexp.MustCompile(`(?i)\b(is|are|was|were|been)\s+told\b`),                                               // receives, learns
	regexp.MustCompile(`(?i)\b(goes|went)\s+on\b`),                                                            // continues
	regexp.MustCompile(`(?i)\b(st(ands?|ood)\s+still|begins?\s+anew|joins?\s+anew|for\s+(good|want\s+of))\b`), // is stopped, again, permanently
	regexp.MustCompile(`(?i)\bturn(s|ed)?\s+away\b`),                                                          // rejects
	regexp.MustCompile(`(?i)\bfor\s+the\s+length\s+of\s+(a|the)\s+test`),                                      // during
}

// behind matches "behind" in a message if it means "after".
var behind = regexp.MustCompile(`(?i)(^|[^a-z])(\w+\s+)?behind\s+((the|a|an)\s+(end|trailer|log|id|dot|link|snapshot|sync|write|reply|request|key)|it|that|block|[%=\d])`)

// lags matches the one good use of "behind it".
var lags = regexp.MustCompile(`(?i)\blags?\s+behind\b`)

// isTest reports whether a file only helps tests. Their texts may quote other programs.
func isTest(path string) bool {
	return strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "tests/")
}

// wrongBehind returns the first "behind" in a message that means "after".
func wrongBehind(text string) string {
	for _, m := range behind.FindAllStringSubmatch(text, -1) {
		if verb := strings.TrimSpace(m[2]); !strings.HasPrefix(verb, "lag") && verb != "left" {
			return m[0]
		}
	}
	return ""
}

// ofWhich matches a relative clause that should be a sentence. Part is the word before it.
var ofWhich = regexp.MustCompile(`(?i)(?:\b(\w+)\s+)?\b(?:of|by)\s+which\b`)

// parts are the words that native engineers combine with "of which".
var parts = map[string]bool{"all": true, "any": true, "both": true, "each": true, "most": true, "none": true, "one": true, "some": true, "two": true}

// odd returns the first phrase of translated English in a text, and its position.
func odd(text string) (phrase string, at int) {
	for _, p := range phrases {
		if i := p.FindStringIndex(text); i != nil {
			return text[i[0]:i[1]], i[0]
		}
	}
	for _, i := range ofWhich.FindAllStringSubmatchIndex(text, -1) {
		if i[2] < 0 || !parts[strings.ToLower(text[i[2]:i[3]])] {
			return text[i[0]:i[1]], i[0]
		}
	}
	return "", 0
}

// frequencies are how often model code bases use the words of native engineers: the comments
// of hashicorp/raft, bbolt, raft-wal, client_golang and gRPC, and the pages of these, zap
// and compress. We measure occurrences per 10,000 words.
var frequencies = []struct {
	what            string
	words           *regexp.Regexp
	comments, pages float64
}{
	{"we", regexp.MustCompile(`(?i)\b(we|our|ours|us|let's)\b`), 48, 45},
	{"should, e.g.", regexp.MustCompile(`(?i)\b(e\.g\.|i\.e\.|should\b)`), 31, 21},
	{"contractions", regexp.MustCompile(`(?i)\b(\w+(n't|'re|'ve|'ll|'d)|(it|that|there|what|here)'s)\b`), 32, 44},
}

// oneWord matches what frequencies count as a word.
var oneWord = regexp.MustCompile(`[A-Za-z][\w'-]*`)

// unlike returns the frequencies in a text that are less than half, or more than twice, the models'
// frequencies.
func unlike(text string, pages bool) (out []string) {
	for _, f := range frequencies {
		model := f.comments
		if pages {
			model = f.pages
		}
		if n := perTenThousand(text, f.words); n < model/2 || n > model*2 {
			out = append(out, fmt.Sprintf("%s: %.1f per 10,000 words, want about %.0f", f.what, n, model))
		}
	}
	return out
}

// perTenThousand returns how often words occur in 10,000 words of a text.
func perTenThousand(text string, words *regexp.Regexp) float64 {
	return float64(len(words.FindAllStringIndex(text, -1))) / float64(len(oneWord.FindAllStringIndex(text, -1))) * 1e4
}

// plain lists the packages with the comments that we check.
var plain = []string{"proto", "tree", "session", "watch", "client", "recipes/...", "raftfsm/...", "internal/...", "server/...", "cmd/...", "deploy/...", "tests/..."}

// pages returns the pages of docs and of the root. We skip the recorded hours, because they
// quote messages of old versions.
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

// examples matches the code blocks of a page.
var examples = regexp.MustCompile("(?ms)^ *```.*?^ *```")

// prose returns a page without its code blocks, but with their lines.
func prose(page string) string {
	return examples.ReplaceAllStringFunc(page, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
}

// docsLimit is how many words docs may have, counted as wc -w does: with tables and examples.
const docsLimit = 35_000

// TestDocsAreShort limits the words of docs, so that an addition replaces something else.
func TestDocsAreShort(t *testing.T) {
	t.Parallel()
	sum := 0
	for _, page := range append(pages(t), "docs/design/reliability-hours.md") {
		if !strings.HasPrefix(page, "docs/") {
			continue
		}
		b, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		sum += len(strings.Fields(string(b)))
	}
	if sum > docsLimit {
		t.Errorf("docs have %d words, %d at most", sum, docsLimit)
	}
}

func TestPlainWords(t *testing.T) {
	t.Parallel()
	var comments, docs strings.Builder
	folders := map[string]*strings.Builder{} // the comments by top-level folder
	for _, f := range sources(t) {
		if !matches(plain, f.pkg) || f.path == "tests/arch/words_test.go" {
			continue
		}
		for _, m := range f.messages {
			if p := wrongBehind(m.text); p != "" {
				t.Errorf("%s:%d: %q in a text: say after", f.path, m.line, p)
			}
			if p, _ := odd(lags.ReplaceAllString(m.text, "lags")); p != "" && !isTest(f.path) {
				t.Errorf("%s:%d: %q in a text: name the subject, or split the sentence", f.path, m.line, p)
			}
		}
		for _, c := range f.comments {
			if strings.Contains(c.text, "utput:") { // the output of an example
				continue
			}
			comments.WriteString(c.text)
			top, _, _ := strings.Cut(f.pkg, "/")
			if folders[top] == nil {
				folders[top] = &strings.Builder{}
			}
			folders[top].WriteString(c.text)
			if p, at := odd(c.text); p != "" {
				t.Errorf("%s:%d: %q in a comment: name the subject, or split the sentence", f.path, c.line+strings.Count(c.text[:at], "\n"), p)
			}
		}
	}
	for _, page := range pages(t) {
		text, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		s := prose(string(text))
		if page != "CHANGELOG.md" {
			docs.WriteString(s)
		}
		if p, at := odd(s); p != "" {
			t.Errorf("%s:%d: %q: name the subject, or split the sentence", page, 1+strings.Count(s[:at], "\n"), p)
		}
	}
	for _, u := range unlike(comments.String(), false) {
		t.Error("comments: " + u)
	}
	for top, text := range folders {
		if n := perTenThousand(text.String(), frequencies[0].words); n > frequencies[0].comments*2 {
			t.Errorf("comments of %s: we: %.1f per 10,000 words, want about %.0f: name the server, the client or the method", top, n, frequencies[0].comments)
		}
	}
	for _, u := range unlike(docs.String(), true) {
		t.Error("docs: " + u)
	}
}

// TestOddWords checks that we find phrases of translated English, and no others.
func TestOddWords(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"Nobody is told.", "the reader, or who\nholds the lock", "Who has been answered asks again.", "the requests that wait\nbehind it",
		"reads queue behind a write", "The certificate is held\nagainst the server.", "The ensemble is founded.", "a file that stays away",
		"faults broken by hand", "It is the lock by which servers agree.", "a bucket, of which half is full", "It comes back at\nonce.",
		"what waits here", "written other than there", "The state is that of another ensemble.", "No client is told.", "The server goes\non.",
		"gone for good", "A server that stands still begins anew.", "Clients are turned away.", "for the length of a test",
	} {
		if p, _ := odd(s); p == "" {
			t.Errorf("%q is not found", s)
		}
	}
	for _, s := range []string{
		"clients who don't read", "a follower that lags behind the leader", "servers, each of which has a disk", "a proxy behind a firewall",
		"We sync before we reply, e.g. to a create.", "the process that waits for it",
	} {
		if p, _ := odd(s); p != "" {
			t.Errorf("%q in %q", p, s)
		}
	}
}

// TestBehindInMessages checks that we find "behind" where it means "after", and nowhere else.
func TestBehindInMessages(t *testing.T) {
	t.Parallel()
	for text, wrong := range map[string]bool{
		"bytes behind the end": true, "%d bytes behind it": true, "it ends early, behind block %d": true, "a read behind a sync": true,
		"an entry behind %d": true, "a server that lags behind it": false, "left behind: %v": false, "keep the port behind a firewall": false,
	} {
		if p := wrongBehind(text); (p != "") != wrong {
			t.Errorf("%q: found %q", text, p)
		}
	}
}

// TestUnlikeModels checks that we find text that lacks the words of native engineers, and text that
// has nothing else.
func TestUnlikeModels(t *testing.T) {
	t.Parallel()
	without, all := strings.Repeat("The server syncs the log. ", 500), strings.Repeat("We should, e.g. if it doesn't. ", 500)
	for _, pages := range []bool{false, true} {
		if u := unlike(without, pages); len(u) != len(frequencies) {
			t.Errorf("plain text: %v", u)
		}
		if u := unlike(all, pages); len(u) != len(frequencies) {
			t.Errorf("sprinkled text: %v", u)
		}
	}
}
