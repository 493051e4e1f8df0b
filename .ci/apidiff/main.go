// Command apidiff compares the public Go API with that of the last release, and fails if a
// change breaks programs and isn't in accepted.txt. Without a release it compares with
// baseline.zip, a recorded API.
//
//	go run -C .ci/apidiff .             # compare
//	go run -C .ci/apidiff . -accept     # accept what breaks: write accepted.txt
//	go run -C .ci/apidiff . -record     # record the API as baseline.zip, and accept nothing
//
// Every line that -accept writes needs a line in CHANGELOG.md for the users.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	source       = "../.."
	acceptedFile = "accepted.txt"
	baselineFile = "baseline.zip"
)

func main() {
	accept := flag.Bool("accept", false, "write the incompatible changes into "+acceptedFile)
	record := flag.Bool("record", false, "record the API in "+baselineFile+" and empty "+acceptedFile)
	flag.Parse()
	if err := run(*accept, *record); err != nil {
		fmt.Fprintf(os.Stderr, "apidiff: %v\n", err)
		os.Exit(1)
	}
}

func run(accept, record bool) error {
	now, err := load(source)
	if err != nil {
		return err
	}
	if record {
		if err := now.write(baselineFile); err != nil {
			return err
		}
		return os.WriteFile(acceptedFile, nil, 0o644)
	}
	name, before, err := baseline()
	if err != nil {
		return err
	}
	breaks := before.incompatible(now)
	if accept {
		return os.WriteFile(acceptedFile, []byte(lines(breaks)), 0o644)
	}
	b, err := os.ReadFile(acceptedFile)
	if err != nil {
		return err
	}
	accepted := strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' })
	fmt.Printf("%d packages, compared with %s: %d incompatible changes, %d accepted\n", len(before), name, len(breaks), len(accepted))
	return judge(breaks, accepted)
}

// judge returns an error if a change isn't accepted, or if an accepted one isn't there any
// more.
func judge(breaks, accepted []string) error {
	var text string
	if more := without(breaks, accepted); len(more) > 0 {
		text += "these changes break programs:\n" + lines(more) + "Undo them, or accept them with go run -C .ci/apidiff . -accept, and tell users in CHANGELOG.md.\n"
	}
	if gone := without(accepted, breaks); len(gone) > 0 {
		text += filepath.Join(".ci/apidiff", acceptedFile) + " has lines that match no change:\n" + lines(gone) + "Run go run -C .ci/apidiff . -accept.\n"
	}
	if text != "" {
		return fmt.Errorf("%s", text)
	}
	return nil
}

// without returns the elements of a that are not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// lines returns each element as a line.
func lines(all []string) string {
	var b strings.Builder
	for _, s := range all {
		b.WriteString(s + "\n")
	}
	return b.String()
}
