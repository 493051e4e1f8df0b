package zoocfg

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

// keysText describes all keys, one per line: name, verdict and words, separated by
// bars. A line that starts with # begins a section. The verdict noted is the same as in
// ZooKeeper, with words that a reader of ZooKeeper's guide doesn't know.
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

	noted bool
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
		case "noted":
			v = Same
		}
		all = append(all, Description{Section: section, Key: f[0], Verdict: v, Words: f[2], noted: f[1] == "noted"})
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

// otherName matches the name that ZooKeeper's guide has for a key, at the end of its words.
var otherName = regexp.MustCompile(` \([A-Za-z]+\)$`)

// Table returns all keys in Markdown, as in docs/operate/compatibility.md: by section, the names of
// the keys that work as in ZooKeeper and a table of the others; and then the keys without an
// effect, by reason.
func Table() string {
	var b strings.Builder
	type row struct{ keys, words string }
	var same, reasons []string
	var rows []row
	section := ""
	flush := func() {
		if len(same)+len(rows) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n### %s\n", section)
		if len(same) > 0 {
			fmt.Fprintf(&b, "\nThe same: %s.\n", strings.Join(same, ", "))
		}
		if len(rows) > 0 {
			b.WriteString("\n| key | meaning |\n|---|---|\n")
			for i, r := range rows {
				if i+1 < len(rows) && rows[i+1].words == r.words {
					rows[i+1].keys = r.keys + ", " + rows[i+1].keys
					continue
				}
				fmt.Fprintf(&b, "| %s | %s |\n", r.keys, r.words)
			}
		}
		same, rows = nil, nil
	}
	without := map[string][]string{} // keys without an effect by reason
	for _, d := range Descriptions() {
		if d.Section != section {
			flush()
			section = d.Section
		}
		key, words := "`"+d.Key+"`", strings.ReplaceAll(d.Words, "|", `\|`)
		switch {
		case d.Verdict == Meaningless:
			switch d.Section {
			case "Inside of the Java server":
				words = "the inside of ZooKeeper's server, of Java, or debugging"
			case "Of clients and tools":
				words = "for clients"
			}
			if without[words] == nil {
				reasons = append(reasons, words)
			}
			without[words] = append(without[words], key)
		case d.Verdict == Same && !d.noted:
			same = append(same, key+otherName.FindString(words))
		case d.Verdict == Same:
			rows = append(rows, row{key, words})
		default:
			rows = append(rows, row{key, fmt.Sprintf("**%s**: %s", d.Verdict, words)})
		}
	}
	flush()
	b.WriteString("\n### Keys without effect\n\n| keys | why |\n|---|---|\n")
	for _, reason := range reasons {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(without[reason], ", "), reason)
	}
	return b.String()
}
