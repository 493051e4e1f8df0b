package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Script is a parsed conformance script; doc.go describes the language.
type Script struct {
	// Name is the file's name without directory and extension.
	Name string
	// Server lists the zoo.cfg lines that the server must run with.
	Server []string
	// JVM lists Java system properties, "name=value", for settings that ZooKeeper
	// does not read from zoo.cfg.
	JVM []string

	body []line
}

// Slow reports whether the script waits for the server's clock for seconds. A
// quick test run can skip such scripts.
func (s *Script) Slow() bool {
	switch s.Name {
	case "containers-deleted", "session-expiry", "ttl-deleted":
		return true
	}
	return false
}

// line is one line of a script: its words and, if it ends in "{", the block.
type line struct {
	no    int
	words []string
	block []line
}

func (l line) String() string { return strings.Join(l.words, " ") }

// ReadScript parses a script file.
func ReadScript(file string) (*Script, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return ParseScript(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), string(text))
}

// ParseScript parses the text of a script.
func ParseScript(name, text string) (*Script, error) {
	p := parser{lines: strings.Split(text, "\n")}
	body, err := p.block(false)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, p.next, err)
	}
	s := &Script{Name: name}
	for _, l := range body {
		switch l.words[0] {
		case "server":
			s.Server = append(s.Server, l.words[1:]...)
		case "jvm":
			s.JVM = append(s.JVM, l.words[1:]...)
		default:
			s.body = append(s.body, l)
		}
	}
	return s, nil
}

type parser struct {
	lines []string
	next  int // index of the line to read, which is also the number of the previous line
}

// block parses lines up to the closing brace, or to the end at the top level.
func (p *parser) block(nested bool) ([]line, error) {
	var block []line
	for p.next < len(p.lines) {
		text := p.lines[p.next]
		p.next++
		words, err := split(text)
		if err != nil {
			return nil, err
		}
		if len(words) == 0 {
			continue
		}
		l := line{no: p.next, words: words}
		last := len(words) - 1
		switch {
		case words[0] == "}" && last == 0:
			if !nested {
				return nil, fmt.Errorf("closing brace without a block")
			}
			return block, nil
		case words[last] == "{" && last > 0:
			l.words = words[:last]
			if l.block, err = p.block(true); err != nil {
				return nil, err
			}
			if l.block == nil {
				l.block = []line{}
			}
		}
		block = append(block, l)
	}
	if nested {
		return nil, fmt.Errorf("block without a closing brace")
	}
	return block, nil
}

// split splits a line into words at blanks outside of quotes and brackets, up to
// a "#" that begins a word.
func split(text string) ([]string, error) {
	var words []string
	start, depth, quoted := -1, 0, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == '#' && start < 0:
			return words, nil
		}
		blank := !quoted && depth <= 0 && (c == ' ' || c == '\t' || c == '\r')
		if blank && start >= 0 {
			words = append(words, text[start:i])
			start = -1
		} else if !blank && start < 0 {
			start = i
		}
	}
	if quoted {
		return nil, fmt.Errorf("quote without an end")
	}
	if start >= 0 {
		words = append(words, text[start:])
	}
	return words, nil
}

// substitute replaces ${expression} with its value.
func substitute(word string, vars map[string]string) (string, error) {
	for {
		start := strings.Index(word, "${")
		if start < 0 {
			return word, nil
		}
		length := strings.IndexByte(word[start:], '}')
		if length < 0 {
			return "", fmt.Errorf("%q: ${ without }", word)
		}
		value, err := evaluate(word[start+2:start+length], vars)
		if err != nil {
			return "", fmt.Errorf("%q: %w", word, err)
		}
		word = word[:start] + value + word[start+length+1:]
	}
}

// evaluate computes "name", "name+1*2" (left to right, no precedence) and
// "expression:%05d".
func evaluate(expr string, vars map[string]string) (string, error) {
	expr, format, _ := strings.Cut(expr, ":")
	if v, ok := vars[expr]; ok && format == "" {
		return v, nil
	}
	var total int64
	operator := byte('+')
	for rest := expr; ; {
		end := strings.IndexAny(rest, "+-*/%")
		term := rest
		if end >= 0 {
			term = rest[:end]
		}
		if v, ok := vars[term]; ok {
			term = v
		}
		n, err := strconv.ParseInt(term, 0, 64)
		if err != nil {
			return "", fmt.Errorf("no variable and no number: %q", term)
		}
		switch {
		case operator == '+':
			total += n
		case operator == '-':
			total -= n
		case operator == '*':
			total *= n
		case n == 0:
			return "", fmt.Errorf("division by zero")
		case operator == '/':
			total /= n
		default:
			total %= n
		}
		if end < 0 {
			break
		}
		operator, rest = rest[end], rest[end+1:]
	}
	if format == "" {
		format = "%d"
	}
	return fmt.Sprintf(format, total), nil
}
