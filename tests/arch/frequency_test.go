package arch

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rare lists words that native engineers use, but rarely: if they are frequent, a comment reads
// like a translation. Each limit is per 10,000 words of the comments outside test files.
//
// A limit is twice the highest frequency in the comments of etcd-io/raft v3.7.0, pebble v1.1.2
// and miniredis v2.40.0. There are two exceptions. Where these hardly use a phrase (model is 0),
// the limit is our aim, a few in the whole module. "is there" has the same aim, although miniredis
// uses it, because its comments are too few to be a model here.
var rare = []frequency{
	{"takes, taken", regexp.MustCompile(`(?i)\b(takes?|taken|took)\b`), 6.0, 12, "accepts, uses, needs, acquires, lasts"},
	{"what it, what is", regexp.MustCompile(`(?i)\bwhat\s+(it|they|the|a|an|was|were|is|has|have|had|comes|came|belongs|follows|remains|this|that|he|we|another|each)\b`), 2.9, 5.8, "the result, the server's reply: name the thing"},
	{"whose", regexp.MustCompile(`(?i)\bwhose\b`), 1.7, 3.4, "with, that has, or a second sentence"},
	{"those that, that of", regexp.MustCompile(`(?i)\b(those\s+that|that\s+of|those\s+of)\b`), 0.7, 1.4, "the noun again"},
	{"of it, of its own", regexp.MustCompile(`(?i)\bof\s+(it|them|its\s+own|their\s+own|one's\s+own)\b`), 0.7, 1.4, "the noun again, or its"},
	{"holds, held", regexp.MustCompile(`(?i)\b(holds?|held)\b`), 11.1, 22.2, "contains, has, keeps, stores, except for locks"},
	{"nothing of it, part of it", regexp.MustCompile(`(?i)\b(nothing|all|none|much|more|some|part)\s+of\s+(it|them|that|which)\b`), 0.4, 0.8, "everything, some entries: name the thing"},
	{"with it, without one", regexp.MustCompile(`(?i)\b(with|without)\s+(one|it|them)\b`), 1.2, 2.4, "otherwise, by default, or the noun again"},
	{"stands", regexp.MustCompile(`(?i)\b(stands?|stood)\b`), 0, 0.2, "is, means"},
	{"is there, there already", regexp.MustCompile(`(?i)\b(there\s+already|is\s+there|are\s+there)\b`), 1.2, 0.4, "exists"},
	{"as ZooKeeper does", regexp.MustCompile(`(?i)\bas\s+\w+('s)?\s+(does|do|did)\b`), 0, 0.3, "like ZooKeeper"},
	{"meanwhile", regexp.MustCompile(`(?i)\bmeanwhile\b`), 0, 0.2, "during the call, concurrently, by then"},
	{"where it", regexp.MustCompile(`(?i)\bwhere\s+(it|they|to|that)\b`), 0, 0.6, "its place, the address: name the thing"},
}

// frequency is how often comments may use a phrase, in 10,000 words. The models use it at most
// model times.
type frequency struct {
	what         string
	words        *regexp.Regexp
	model, limit float64
	instead      string
}

// TestRareWords counts the phrases of rare in the comments of the whole module, outside test files.
func TestRareWords(t *testing.T) {
	t.Parallel()
	comments := map[string]string{}
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		var text strings.Builder
		for _, c := range f.comments {
			text.WriteString(c.text)
		}
		comments[f.path] = text.String()
	}
	if len(comments) < 500 {
		t.Fatalf("only %d files: this test does not see the module", len(comments))
	}
	for _, p := range tooFrequent(comments, rare) {
		t.Error(p)
	}
}

// tooFrequent returns a message for each phrase that exceeds its limit in the comments of all
// files. The message names the files with the most occurrences.
func tooFrequent(comments map[string]string, phrases []frequency) (problems []string) {
	words := 0
	for _, text := range comments {
		words += len(oneWord.FindAllStringIndex(text, -1))
	}
	for _, f := range phrases {
		sum, counts := 0, map[string]int{}
		for path, text := range comments {
			if n := len(f.words.FindAllStringIndex(text, -1)); n > 0 {
				counts[path] = n
				sum += n
			}
		}
		if n := float64(sum) / float64(words) * 1e4; n > f.limit {
			problems = append(problems, fmt.Sprintf("comments use %q %.1f times in 10,000 words, at most %.1f: write %s; most often in %s",
				f.what, n, f.limit, f.instead, strings.Join(highest(counts, 10), ", ")))
		}
	}
	return problems
}

// highest returns the n keys with the highest counts, in this order.
func highest(counts map[string]int, n int) []string {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	return keys[:min(n, len(keys))]
}

// TestTooFrequent checks that every phrase of rare is found in a text that uses it too often, and
// in no text that says the same in other words.
func TestTooFrequent(t *testing.T) {
	t.Parallel()
	plain := strings.Repeat("The server syncs the log. ", 2000)
	for i, s := range []string{
		"It took a lock.", "It prints what\nit has read.", "a file whose name ends in .log", "the keys and those of the client", "a copy\nof its own",
		"The map holds sessions.", "if none of it is left", "a server without one", "A dot stands for all names.", "The file is there already.",
		"as ZooKeeper does", "It waits meanwhile.", "the offset where it begins",
	} {
		f := rare[i]
		text := map[string]string{"a.go": plain, "b.go": strings.Repeat(s+" ", 200)}
		if p := tooFrequent(text, []frequency{f}); len(p) != 1 || !strings.HasSuffix(p[0], "in b.go") {
			t.Errorf("%s: %q", f.what, p)
		}
		if f.model > 0 && f.limit > f.model*2+0.01 {
			t.Errorf("%s: the limit %.1f is more than twice %.1f", f.what, f.limit, f.model)
		}
	}
	once := map[string]string{"a.go": plain + "The offset where it begins."}
	for _, f := range rare {
		if f.limit > 1 && len(tooFrequent(once, []frequency{f})) != 0 {
			t.Errorf("%s: found in plain text", f.what)
		}
	}
	for _, s := range []string{
		"It acquires a lock.", "It prints the result.", "a file with a name", "the client's keys", "its copy", "The map contains sessions.",
		"Nothing is left.", "a single server", "A dot matches all names.", "The file exists.", "like ZooKeeper", "It waits.", "its first offset",
	} {
		if p := tooFrequent(map[string]string{"a.go": s}, rare); len(p) != 0 {
			t.Errorf("%q: %q", s, p)
		}
	}
}
