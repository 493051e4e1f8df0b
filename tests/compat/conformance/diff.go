package conformance

import (
	"fmt"
	"os"
	"strings"
)

// Compare returns the differences between two transcripts, with the lines around
// the first difference, or "" if they are the same.
func Compare(want, got string) string {
	if want == got {
		return ""
	}
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	at := 0
	for at < len(w) && at < len(g) && w[at] == g[at] {
		at++
	}
	different := 0
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) || w[i] != g[i] {
			different++
		}
	}
	const before, after = 12, 6
	var out strings.Builder
	fmt.Fprintf(&out, "first difference at line %d, %d lines differ by position\n", at+1, different)
	for i := max(0, at-before); i < at; i++ {
		fmt.Fprintf(&out, "    %s\n", w[i])
	}
	for i := at; i < min(at+after, len(w)); i++ {
		fmt.Fprintf(&out, "  - %s\n", w[i])
	}
	for i := at; i < min(at+after, len(g)); i++ {
		fmt.Fprintf(&out, "  + %s\n", g[i])
	}
	return out.String()
}

// Difference is a place where the server under test deliberately differs from
// ZooKeeper.
type Difference struct {
	Script string // the transcript that it applies to
	Reason string
	Theirs string // lines of ZooKeeper's transcript, which must occur once
	Ours   string // lines that replace them
}

// ReadDifferences parses a file of blocks
//
//	script NAME
//	reason WHY, over as many lines as needed
//	- a line of ZooKeeper's transcript
//	+ the line in its place
//
// separated by empty lines; "#" begins a comment.
func ReadDifferences(file string) ([]Difference, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []Difference
	open := false
	for i, l := range strings.Split(string(text), "\n") {
		word, rest, _ := strings.Cut(l, " ")
		if strings.HasPrefix(l, "#") {
			continue
		}
		if l == "" {
			open = false
			continue
		}
		if !open && word != "script" {
			return nil, fmt.Errorf("%s:%d: a block begins with its script", file, i+1)
		}
		if word == "script" {
			all, open = append(all, Difference{Script: rest}), true
			continue
		}
		d := &all[len(all)-1]
		switch word {
		case "reason":
			d.Reason = rest
		case "-":
			d.Theirs += rest + "\n"
		case "+":
			d.Ours += rest + "\n"
		default:
			d.Reason += " " + strings.TrimSpace(l)
		}
	}
	for _, d := range all {
		if d.Reason == "" || d.Theirs == "" {
			return nil, fmt.Errorf("%s: a difference of %q lacks a reason or the lines it replaces", file, d.Script)
		}
	}
	return all, nil
}

// Apply turns ZooKeeper's transcript of a script into the one expected from the
// server under test. A difference that no longer applies is an error.
func Apply(all []Difference, script, transcript string) (string, error) {
	for _, d := range all {
		if d.Script != script {
			continue
		}
		if n := occurrences(transcript, d.Theirs); n != 1 {
			return "", fmt.Errorf("the lines of a listed difference occur %d times in the transcript of %s:\n%s", n, script, d.Theirs)
		}
		replaced := strings.Replace("\n"+transcript, "\n"+d.Theirs, "\n"+d.Ours, 1)
		transcript = replaced[1:]
	}
	return transcript, nil
}

// occurrences counts where the lines begin in text, including overlapping ones.
func occurrences(text, lines string) int {
	n := 0
	for rest := "\n" + text; ; n++ {
		at := strings.Index(rest, "\n"+lines)
		if at < 0 {
			return n
		}
		rest = rest[at+1:]
	}
}
