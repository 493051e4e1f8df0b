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
	Meaningless Verdict = "no effect"
	Missing     Verdict = "missing"
	Ours        Verdict = "zkgo's own"
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

// Table returns the tables of all keys in Markdown, as in docs/operate/compatibility.md: the
// keys that have an effect by section, and then the others by the reason.
func Table() string {
	var b strings.Builder
	section := ""
	var reasons []string
	without := map[string][]string{} // keys without an effect by reason
	for _, d := range Descriptions() {
		key, words := "`"+d.Key+"`", strings.ReplaceAll(d.Words, "|", `\|`)
		if d.Verdict == Meaningless {
			if without[words] == nil {
				reasons = append(reasons, words)
			}
			without[words] = append(without[words], key)
			continue
		}
		if d.Section != section {
			section = d.Section
			fmt.Fprintf(&b, "\n### %s\n\n| key | meaning |\n|---|---|\n", section)
		}
		if d.Verdict != Same {
			words = "**" + string(d.Verdict) + "**: " + words
		}
		fmt.Fprintf(&b, "| %s | %s |\n", key, words)
	}
	b.WriteString("\n### Keys without effect\n\n| keys | why |\n|---|---|\n")
	for _, reason := range reasons {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(without[reason], ", "), reason)
	}
	return b.String()
}
