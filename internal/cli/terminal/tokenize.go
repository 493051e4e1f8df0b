package terminal

import (
	"regexp"
	"strings"
)

// word matches the tokens of zkCli.sh: words, or anything between a pair of quotation
// marks. A quotation mark inside a word belongs to the word, and an unpaired one is skipped.
var word = regexp.MustCompile(`[ \t\n\v\f\r]*([^"'][^ \t\n\v\f\r]*|"[^"]*"|'[^']*')[ \t\n\v\f\r]*`)

// blanks are the characters between words.
const blanks = " \t\n\v\f\r"

// LastWord returns where the last, possibly empty, word of a line begins, and its
// opening quotation mark if that isn't closed; 0 otherwise.
func LastWord(line string) (begin int, quote byte) {
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

// Quote quotes a word if necessary, with its opening mark if it has one. closed
// means that the word is complete. A word with blanks and both marks can't be written
// in one line.
func Quote(word string, mark byte, closed bool) string {
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

// Split splits a line into a command and its arguments.
func Split(line string) []string {
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
