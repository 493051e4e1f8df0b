package cli

import "regexp"

// word is how zkCli.sh cuts a line: words, or anything between a pair of quotation
// marks. A quotation mark inside a word is part of it, and one without a partner is
// skipped.
var word = regexp.MustCompile(`[ \t\n\v\f\r]*([^"'][^ \t\n\v\f\r]*|"[^"]*"|'[^']*')[ \t\n\v\f\r]*`)

// split cuts a line into a command and its arguments.
func split(line string) []string {
	var words []string
	for _, m := range word.FindAllStringSubmatch(line, -1) {
		w := m[1]
		if len(w) > 1 && (w[0] == '"' || w[0] == '\'') && w[len(w)-1] == w[0] {
			w = w[1 : len(w)-1]
		}
		words = append(words, w)
	}
	return words
}
