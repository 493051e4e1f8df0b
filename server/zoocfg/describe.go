package zoocfg

import (
	_ "embed"
	"fmt"
	"strings"
)

// keysText says of every key what it means here, one a line: its name, the
// verdict and the words, with bars between. A line with # begins a section.
//
//go:embed keys.txt
var keysText string

// Verdict says how a key of ZooKeeper's does here.
type Verdict string

// The verdicts.
const (
	Same        Verdict = "same"
	Better      Verdict = "better"
	Meaningless Verdict = "meaningless here"
	Missing     Verdict = "missing"
	Ours        Verdict = "of zkgo's own"
)

// Description is what a key means. The keys with a number are server.N, group.N,
// weight.N and authProvider.N.
type Description struct {
	Section string  `json:"section"`
	Key     string  `json:"key"`
	Verdict Verdict `json:"verdict"`
	Words   string  `json:"words"`
}

// Descriptions are those of all keys, by sections.
func Descriptions() []Description {
	var all []Description
	section := ""
	for line := range strings.Lines(keysText) {
		line = strings.TrimSuffix(line, "\n")
		if title, ok := strings.CutPrefix(line, "# "); ok {
			section = title
			continue
		}
		f := strings.SplitN(line, "|", 3)
		if len(f) != 3 {
			continue // which a test finds
		}
		v := Verdict(f[1])
		switch f[1] {
		case "meaningless":
			v = Meaningless
		case "ours":
			v = Ours
		}
		all = append(all, Description{Section: section, Key: f[0], Verdict: v, Words: f[2]})
	}
	return all
}

// Describe is the description of a key as it stands in a file; ok is false for
// one that nobody knows.
func Describe(key string) (d Description, ok bool) {
	name := key
	for _, prefix := range []string{"server.", "group.", "weight.", authProviderPrefix} {
		if strings.HasPrefix(key, prefix) {
			name = prefix + "N"
		}
	}
	for _, d := range Descriptions() {
		if d.Key == name {
			return d, true
		}
	}
	return Description{}, false
}

// Table is the table of all keys in Markdown, as docs/compatibility.md has it.
func Table() string {
	var b strings.Builder
	section := ""
	for _, d := range Descriptions() {
		if d.Section != section {
			section = d.Section
			fmt.Fprintf(&b, "\n### %s\n\n| key | | |\n|---|---|---|\n", section)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", d.Key, d.Verdict, strings.ReplaceAll(d.Words, "|", `\|`))
	}
	return b.String()
}
