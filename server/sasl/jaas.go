package sasl

import (
	"errors"
	"fmt"
	"strings"
)

// Users maps a user's name to the password in clear: DIGEST-MD5 needs it.
type Users map[string]string

// userPrefix opens the options of DigestLoginModule that name users.
const userPrefix = "user_"

// digestModule ends the name of the login module that ZooKeeper uses.
const digestModule = "DigestLoginModule"

// ErrNoSection reports that a JAAS configuration lacks the section asked for.
var ErrNoSection = errors.New("JAAS configuration has no section")

// ParseJAAS reads the users of one section, usually "Server", from the text of
// a JAAS login configuration:
//
//	Server {
//	    org.apache.zookeeper.server.auth.DigestLoginModule required
//	    user_bob="secret";
//	};
//
// A missing section, another login module and a section without users are
// errors.
func ParseJAAS(text, section string) (Users, error) {
	toks, err := tokens(text)
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(toks); i++ {
		if toks[i].text == section && toks[i+1].text == "{" {
			return users(toks[i+2:], section)
		}
	}
	return nil, fmt.Errorf("%w %q", ErrNoSection, section)
}

// users reads a section's options up to its closing brace.
func users(toks []token, section string) (Users, error) {
	if len(toks) == 0 || !strings.HasSuffix(toks[0].text, digestModule) {
		return nil, fmt.Errorf("JAAS section %q does not use %s, the only module there is", section, digestModule)
	}
	found := Users{}
	for i, t := range toks {
		if t.text == "}" && !t.quoted {
			break
		}
		name, ok := strings.CutPrefix(t.text, userPrefix)
		if !ok || t.quoted {
			continue
		}
		if i+2 >= len(toks) || toks[i+1].text != "=" {
			return nil, fmt.Errorf("JAAS section %q, line %d: %s has no value", section, t.line, t.text)
		}
		found[name] = toks[i+2].text
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("JAAS section %q names no user", section)
	}
	return found, nil
}

// token is a word, a quoted string or one of { } = ; in a JAAS file.
type token struct {
	text   string
	quoted bool
	line   int
}

// tokens splits a JAAS file, leaving out its comments.
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

// next returns the length of the first thing in text and its token, an empty
// one for spaces and comments; −1 for what has no end.
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
		if i := strings.IndexByte(text[1:], '"'); i >= 0 {
			return i + 2, token{text: text[1 : i+1], quoted: true}
		}
		return -1, token{}
	}
	if i := strings.IndexAny(text, " \t\r\n{}=;\""); i >= 0 {
		return i, token{text: text[:i]}
	}
	return len(text), token{text: text}
}
