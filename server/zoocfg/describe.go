package zoocfg

import (
	_ "embed"
	"fmt"
	"strings"
)

// keysText describes all keys, one per line: name, verdict and words, separated by
// bars. A line that starts with # begins a section.
//
//go:embed keys.txt
var keysText string

// Verdict says how zkgo treats one of ZooKeeper's keys.
type Verdict string

// The verdicts.
const (
	Same        Verdict = "same"
	Better      Verdict = "better"
	Meaningless Verdict = "meaningless here"
	Missing     Verdict = "missing"
	Ours        Verdict = "of zkgo's own"
)

// Description describes a key. The keys with a number are server.N, group.N, weight.N
// and authProvider.N.
type Description struct {
	Section string  `json:"section"`
	Key     string  `json:"key"`
	Verdict Verdict `json:"verdict"`
	Words   string  `json:"words"`
}

// Descriptions returns the descriptions of all keys, ordered by section.
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
			continue // a test detects malformed lines
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

// Describe returns the description of a key as written in a file; ok is false if the
// key is unknown.
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

// Table returns the table of all keys in Markdown, as in docs/compatibility.md.
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
