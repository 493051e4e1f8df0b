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
// A missing section, another login module, and a section without users are errors.
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
		return nil, fmt.Errorf("JAAS section %q does not use %s, the only module there is", section, digestModule)
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
