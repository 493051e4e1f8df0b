package mirror

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Severity is how much a finding matters.
type Severity string

// The severities.
const (
	Blocks Severity = "blocks" // the cutover doesn't begin
	Warns  Severity = "warns"  // the operator should decide
	OK     Severity = "ok"
)

// Finding is the result of one check before the cutover.
type Finding struct {
	Severity Severity `json:"severity"`
	Check    string   `json:"check"`            // its subject, e.g. "version"
	Server   string   `json:"server,omitempty"` // of the old ensemble, if it is about one
	Text     string   `json:"text"`
	Do       string   `json:"do,omitempty"` // what to do about it
}

// String returns the finding as lines of text.
func (f *Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-6s  %s: ", f.Severity, f.Check)
	if f.Server != "" {
		fmt.Fprintf(&b, "%s: ", f.Server)
	}
	b.WriteString(f.Text)
	if f.Do != "" {
		fmt.Fprintf(&b, "\n        → %s", f.Do)
	}
	return b.String()
}

// Findings are the results of all checks, the most severe first.
type Findings []Finding

// Blocked reports whether a finding blocks the cutover.
func (fs Findings) Blocked() bool {
	return slices.ContainsFunc(fs, func(f Finding) bool { return f.Severity == Blocks })
}

// Write writes the findings as text.
func (fs Findings) Write(w io.Writer) error {
	for i := range fs {
		if _, err := fmt.Fprintln(w, fs[i].String()); err != nil {
			return err
		}
	}
	return nil
}

// sort puts the most severe first, and otherwise keeps the order of the checks.
func (fs Findings) sort() {
	rank := map[Severity]int{Blocks: 0, Warns: 1, OK: 2}
	slices.SortStableFunc(fs, func(a, b Finding) int { return rank[a.Severity] - rank[b.Severity] })
}

// add adds a finding about the whole ensemble.
func (fs *Findings) add(s Severity, check, text, do string) {
	*fs = append(*fs, Finding{Severity: s, Check: check, Text: text, Do: do})
}

// of adds a finding about one server.
func (fs *Findings) of(v *seen, s Severity, check, text, do string) {
	*fs = append(*fs, Finding{Severity: s, Check: check, Server: v.server.String(), Text: text, Do: do})
}

// Lost returns the findings for servers that have failed permanently: a check that only these
// servers could pass no longer blocks.
func (fs Findings) Lost() Findings {
	for i := range fs {
		if f := &fs[i]; f.Severity == Blocks && slices.Contains([]string{"servers", "mode", "version", "lag"}, f.Check) {
			f.Severity = Warns
		}
	}
	return fs
}
