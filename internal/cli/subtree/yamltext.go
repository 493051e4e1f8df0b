package subtree

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// text is a string that every YAML parser reads back unchanged. YAML 1.1 and 1.2 disagree
// about which plain scalars are strings (`=`, `<<`, yes, 017, 12:30:45, 2026-11-26), so we
// write a text plain only if every version reads it as a string, and quote it otherwise.
type text string

// MarshalYAML chooses the style of the scalar.
func (t text) MarshalYAML() (any, error) {
	s := string(t)
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	switch {
	case !utf8.ValidString(s):
		n.Tag = "" // the encoder writes it as !!binary
	case plain(s):
	case block(s):
		n.Style = yaml.LiteralStyle
	case strings.ContainsAny(s, `"\`) && verbatim(s):
		n.Style = yaml.SingleQuotedStyle // as in '{"a": 1}'
	default:
		n.Style = yaml.DoubleQuotedStyle
	}
	return n, nil
}

// verbatim reports whether a text can be written in single quotes, which have no
// escapes.
func verbatim(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '\'' {
			return false
		}
	}
	return true
}

// plain reports whether a text needs no quotes. We list safe texts instead of dangerous
// ones: the text begins with an ASCII letter or a slash, contains only characters without a
// meaning inside a scalar, and isn't a word for a boolean or null.
func plain(s string) bool {
	if s == "" || s[0] != '/' && !letter(s[0]) {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case letter(c), c >= '0' && c <= '9', strings.IndexByte("/_-.+=@", c) >= 0:
		case c == ':' || c == ' ':
			// "key: value", "text #comment" and blanks at the end.
			if i+1 == len(s) || s[i+1] == ' ' || s[i+1] == ':' && c == ' ' {
				return false
			}
		default:
			return false
		}
	}
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	return true
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// block reports whether a text of several lines can be written as a literal block: it
// ends in at most one newline, begins with a non-blank character, and no line has a
// tab or ends in a blank.
func block(s string) bool {
	lines := strings.TrimSuffix(s, "\n")
	if !strings.Contains(lines, "\n") || !printable(s) || strings.Contains(s, "\t") ||
		strings.HasPrefix(s, " ") || strings.HasPrefix(s, "\n") || strings.HasSuffix(lines, "\n") {
		return false
	}
	for line := range strings.SplitSeq(lines, "\n") {
		if strings.HasSuffix(line, " ") {
			return false
		}
	}
	return true
}

// yamlKeeps reports whether YAML preserves a text. Blanks at the ends of lines may
// get lost.
func yamlKeeps(s string) bool {
	if !strings.ContainsAny(s, "\n\t") && strings.TrimSpace(s) == s {
		return true
	}
	b, err := yaml.Marshal(text(s))
	var back string
	return err == nil && yaml.Unmarshal(b, &back) == nil && back == s
}
