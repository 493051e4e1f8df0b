package zoocfg

import (
	"errors"
	"strings"
	"unicode/utf16"
)

// A property is one logical line of a properties file.
type property struct {
	key, value string
	line       int  // line in the file where the logical line starts
	eightBit   bool // contains bytes outside of ASCII
	backslash  bool // contains a backslash that is dropped, as in C:\data
}

// properties parses a Java properties file. It returns all logical lines in file
// order, with keys and values unescaped but not trimmed. Like Java it decodes the
// bytes as ISO-8859-1, so other characters must be written as \u escapes.
func properties(text string) ([]property, error) {
	r := lineReader{text: text, line: 1}
	var all []property
	for r.next() {
		p, err := splitProperty(r.logical)
		if err != nil {
			return nil, &Error{Line: r.start, Msg: err.Error()}
		}
		p.line = r.start
		p.eightBit = strings.ContainsFunc(r.logical, func(c rune) bool { return c > 0x7f })
		p.backslash = dropsBackslash(r.logical)
		all = append(all, p)
	}
	return all, nil
}

// dropsBackslash reports whether a line has a backslash before a character that needs none,
// so that Java drops it.
func dropsBackslash(line string) bool {
	for i := 0; i+1 < len(line); i++ {
		if line[i] == '\\' {
			if i++; !strings.ContainsRune(`\tnrfu=:#! `, rune(line[i])) {
				return true
			}
		}
	}
	return false
}

// Properties parses a Java properties file, e.g. a client's, with Java's rules for comments,
// continued lines and escapes. A byte order mark is skipped. Of several lines with the same key the
// last counts.
func Properties(text string) (map[string]string, error) {
	all, err := properties(strings.TrimPrefix(text, byteOrderMark))
	if err != nil {
		return nil, err
	}
	values := make(map[string]string, len(all))
	for _, p := range all {
		values[p.key] = p.value
	}
	return values, nil
}

// lineReader joins natural lines into logical ones.
type lineReader struct {
	text    string
	pos     int
	line    int // line of text[pos]
	start   int // line where the logical line starts
	logical string
}

// next advances to the next logical line that is neither blank nor a comment.
func (r *lineReader) next() bool {
	var b strings.Builder
	for r.pos < len(r.text) {
		at := r.line
		natural := strings.TrimLeft(r.natural(), " \t\f")
		// A comment may follow a continued line if that line was empty so far.
		if b.Len() == 0 {
			if natural == "" || natural[0] == '#' || natural[0] == '!' {
				continue
			}
			r.start = at
		}
		more := continued(natural)
		if more {
			natural = natural[:len(natural)-1]
		}
		b.WriteString(natural)
		if !more && b.Len() > 0 {
			break
		}
	}
	r.logical = b.String()
	return r.logical != ""
}

// natural consumes the text up to the next line end: \n, \r or \r\n.
func (r *lineReader) natural() string {
	rest := r.text[r.pos:]
	r.line++
	end := strings.IndexAny(rest, "\r\n")
	if end < 0 {
		r.pos = len(r.text)
		return rest
	}
	r.pos += end + 1
	if rest[end] == '\r' && strings.HasPrefix(rest[end+1:], "\n") {
		r.pos++
	}
	return rest[:end]
}

// continued reports whether the line ends in an odd number of backslashes.
func continued(s string) bool {
	n := len(s) - len(strings.TrimRight(s, `\`))
	return n%2 == 1
}

// splitProperty splits a logical line at its first unescaped separator.
func splitProperty(s string) (property, error) {
	end := 0
	for end < len(s) && !strings.ContainsRune("=: \t\f", rune(s[end])) {
		if s[end] == '\\' {
			end++
		}
		end++
	}
	end = min(end, len(s))
	rest := strings.TrimLeft(s[end:], " \t\f")
	if rest != "" && (rest[0] == '=' || rest[0] == ':') {
		rest = strings.TrimLeft(rest[1:], " \t\f")
	}
	key, err := unescape(s[:end])
	if err != nil {
		return property{}, err
	}
	value, err := unescape(rest)
	return property{key: key, value: value}, err
}

var errUnicodeEscape = errors.New(`Malformed \uxxxx encoding: expected four hexadecimal digits`)

// unescape decodes the escapes in a key or value. Java's strings are UTF-16, so two
// escapes may form one character.
func unescape(s string) (string, error) {
	units := make([]uint16, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			units = append(units, uint16(s[i]))
			continue
		}
		i++
		if i == len(s) {
			break
		}
		switch s[i] {
		case 'u':
			u, ok := hex4(s[i+1:])
			if !ok {
				return "", errUnicodeEscape
			}
			units = append(units, u)
			i += 4
		case 't':
			units = append(units, '\t')
		case 'r':
			units = append(units, '\r')
		case 'n':
			units = append(units, '\n')
		case 'f':
			units = append(units, '\f')
		default:
			units = append(units, uint16(s[i]))
		}
	}
	return string(utf16.Decode(units)), nil
}

func hex4(s string) (u uint16, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for i := range 4 {
		d := strings.IndexByte("0123456789abcdefABCDEF", s[i])
		if d < 0 {
			return 0, false
		}
		if d > 15 {
			d -= 6
		}
		u = u<<4 | uint16(d)
	}
	return u, true
}
