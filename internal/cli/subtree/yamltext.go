package subtree

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// text is a string that every YAML parser reads back as the same string. YAML 1.1
// and 1.2 disagree about which plain scalars are strings (`=`, `<<`, yes, 017,
// 12:30:45, 2026-11-26), so a text is plain only if no version could read it as
// anything else, and quoted otherwise.
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

// verbatim reports whether a text can stand between single quotes, which escape
// nothing.
func verbatim(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '\'' {
			return false
		}
	}
	return true
}

// plain reports whether a text needs no quotes. It lists what is safe, not what is
// dangerous: the text begins with an ASCII letter or a slash, has only characters
// that mean nothing inside a scalar, and is not a word for a boolean or for null.
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

// block reports whether a text of several lines can be written as a literal block:
// it ends in one newline or none, begins with a character that is not blank, and no
// line has a tab or ends in a blank.
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

// yamlKeeps reports whether a text comes back from YAML as it was. Blanks at the
// ends of lines are where it might not.
func yamlKeeps(s string) bool {
	if !strings.ContainsAny(s, "\n\t") && strings.TrimSpace(s) == s {
		return true
	}
	b, err := yaml.Marshal(text(s))
	var back string
	return err == nil && yaml.Unmarshal(b, &back) == nil && back == s
}
