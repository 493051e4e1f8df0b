package cli

import (
	"regexp"
	"strings"
)

// word is how zkCli.sh cuts a line: words, or anything between a pair of quotation
// marks. A quotation mark inside a word is part of it, and one without a partner is
// skipped.
var word = regexp.MustCompile(`[ \t\n\v\f\r]*([^"'][^ \t\n\v\f\r]*|"[^"]*"|'[^']*')[ \t\n\v\f\r]*`)

// blanks are what stands between words.
const blanks = " \t\n\v\f\r"

// lastWord returns where the last word of a line begins, which may have just begun,
// and its quotation mark if it has one that is not closed; 0 if not.
func lastWord(line string) (begin int, quote byte) {
	for i := 0; ; {
		for i < len(line) && strings.IndexByte(blanks, line[i]) >= 0 {
			i++
		}
		if i == len(line) {
			return i, 0
		}
		begin = i
		if c := line[i]; c == '"' || c == '\'' {
			end := strings.IndexByte(line[i+1:], c)
			if end < 0 {
				return begin, c
			}
			if i += end + 2; i == len(line) {
				return begin, 0
			}
			continue
		}
		for i < len(line) && strings.IndexByte(blanks, line[i]) < 0 {
			i++
		}
		if i == len(line) {
			return begin, 0
		}
	}
}

// quoted writes a word so that it is one, with the mark that it has begun with, if
// any. closed says that the word is whole. A word with blanks and both marks in it
// cannot be written in one line.
func quoted(word string, mark byte, closed bool) string {
	if mark == 0 && !strings.ContainsAny(word, blanks) {
		return word
	}
	if mark == 0 || strings.IndexByte(word, mark) >= 0 {
		mark = '"'
		if strings.IndexByte(word, mark) >= 0 {
			mark = '\''
		}
	}
	text := string(mark) + word
	if closed {
		text += string(mark)
	}
	return text
}

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
