package jaas

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zkgo/zkgo/internal/sasl"
)

// userPrefix is the prefix of DigestLoginModule options that define users.
const userPrefix = "user_"

// digestModule is the suffix of the name of ZooKeeper's login module.
const digestModule = "DigestLoginModule"

// ErrNoSection means that a JAAS configuration lacks the requested section.
var ErrNoSection = errors.New("JAAS configuration has no section")

// Users returns the users of one section, usually "Server", of a JAAS login
// configuration:
//
//	Server {
//	    org.apache.zookeeper.server.auth.DigestLoginModule required
//	    user_bob="secret";
//	};
//
// We reject a missing section, another login module, and a section without users.
func Users(text, section string) (sasl.Users, error) {
	options, err := options(text, section)
	if err != nil {
		return nil, err
	}
	found := sasl.Users{}
	for _, o := range options {
		if name, ok := strings.CutPrefix(o.name, userPrefix); ok {
			found[name] = o.value
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("JAAS section %q names no user", section)
	}
	return found, nil
}

// Login returns the user and password of a section, usually "QuorumLearner":
//
//	QuorumLearner {
//	    org.apache.zookeeper.server.auth.DigestLoginModule required
//	    username="bob"
//	    password="secret";
//	};
func Login(text, section string) (user, password string, err error) {
	options, err := options(text, section)
	if err != nil {
		return "", "", err
	}
	has := map[string]string{}
	for _, o := range options {
		has[o.name] = o.value
	}
	for _, name := range []string{"username", "password"} {
		if has[name] == "" {
			return "", "", fmt.Errorf("JAAS section %q has no %s", section, name)
		}
	}
	return has["username"], has["password"], nil
}

// option is one name=value pair of a section.
type option struct{ name, value string }

// options returns the options of a section, which must use ZooKeeper's login module.
func options(text, section string) ([]option, error) {
	toks, err := tokens(text)
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(toks); i++ {
		if toks[i].text == section && toks[i+1].text == "{" {
			return optionsUntilBrace(toks[i+2:], section)
		}
	}
	return nil, fmt.Errorf("%w %q", ErrNoSection, section)
}

// optionsUntilBrace parses a section from its opening brace on.
func optionsUntilBrace(toks []token, section string) ([]option, error) {
	if len(toks) == 0 || !strings.HasSuffix(toks[0].text, digestModule) {
		return nil, fmt.Errorf("JAAS section %q does not use %s, the only supported module", section, digestModule)
	}
	var found []option
	for i, t := range toks {
		if t.text == "}" && !t.quoted {
			break
		}
		if t.quoted || i == 0 || toks[i-1].text == "=" && !toks[i-1].quoted {
			continue // a value
		}
		is := i+1 < len(toks) && toks[i+1].text == "=" && !toks[i+1].quoted
		switch {
		case is && i+2 < len(toks):
			found = append(found, option{t.text, toks[i+2].text})
		case is, strings.HasPrefix(t.text, userPrefix):
			return nil, fmt.Errorf("JAAS section %q, line %d: %s has no value", section, t.line, t.text)
		}
	}
	return found, nil
}

// token is a word, a quoted string, or one of { } = ; in a JAAS file.
type token struct {
	text   string
	quoted bool
	line   int
}

// tokens splits a JAAS file into tokens and skips comments.
func tokens(text string) ([]token, error) {
	var toks []token
	line := 1
	for len(text) > 0 {
		skip, tok := next(text)
		if skip < 0 {
			return nil, fmt.Errorf("JAAS configuration, line %d: a quote or comment is not closed", line)
		}
		if tok.text != "" || tok.quoted {
			tok.line = line
			toks = append(toks, tok)
		}
		line += strings.Count(text[:skip], "\n")
		text = text[skip:]
	}
	return toks, nil
}

// next returns the length of the first item in text and its token. The token is empty
// for spaces and comments. The length is −1 for an unterminated item.
func next(text string) (int, token) {
	switch {
	case strings.IndexByte(" \t\r\n", text[0]) >= 0:
		return 1, token{}
	case strings.IndexByte("{}=;", text[0]) >= 0:
		return 1, token{text: text[:1]}
	case strings.HasPrefix(text, "//"), text[0] == '#':
		if i := strings.IndexByte(text, '\n'); i >= 0 {
			return i, token{}
		}
		return len(text), token{}
	case strings.HasPrefix(text, "/*"):
		if i := strings.Index(text, "*/"); i >= 0 {
			return i + 2, token{}
		}
		return -1, token{}
	case text[0] == '"':
		return quoted(text)
	}
	if i := strings.IndexAny(text, " \t\r\n{}=;\""); i >= 0 {
		return i, token{text: text[:i]}
	}
	return len(text), token{text: text}
}

// quoted is next for a quoted string. Java's parser is a StreamTokenizer: it decodes the
// escapes, and a string doesn't continue on the next line.
func quoted(text string) (int, token) {
	var b strings.Builder
	for i := 1; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			return i + 1, token{text: b.String(), quoted: true}
		case c == '\n', c == '\r':
			return -1, token{}
		case c != '\\':
			b.WriteByte(c)
			i++
		case i+1 == len(text):
			return -1, token{}
		case text[i+1] >= '0' && text[i+1] <= '7':
			n, char := octal(text[i+1:])
			b.WriteRune(char)
			i += 1 + n
		default:
			b.WriteByte(escaped(text[i+1]))
			i += 2
		}
	}
	return -1, token{}
}

// octal decodes one to three octal digits, up to 377, and returns their number.
func octal(text string) (n int, char rune) {
	limit := 2
	if text[0] <= '3' {
		limit = 3
	}
	for n < limit && n < len(text) && text[n] >= '0' && text[n] <= '7' {
		char = char<<3 | rune(text[n]-'0')
		n++
	}
	return n, char
}

// escaped returns the character that a backslash and c mean: c itself, unless c names a
// control character.
func escaped(c byte) byte {
	if i := strings.IndexByte("abfnrtv", c); i >= 0 {
		return "\a\b\f\n\r\t\v"[i]
	}
	return c
}
