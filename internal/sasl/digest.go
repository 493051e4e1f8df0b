package sasl

import (
	"crypto/md5" //nolint:gosec // DIGEST-MD5 is what ZooKeeper speaks
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrRefused means that the user, the password or the response is wrong.
var ErrRefused = errors.New("sasl: authentication refused")

// Users maps a user's name to the password in clear text, which DIGEST-MD5 needs.
type Users map[string]string

const (
	// Realm is the realm that a ZooKeeper server sends to its clients.
	Realm = "zk-sasl-md5"
	// QuorumRealm is the realm that it sends to other servers.
	QuorumRealm = "zk-quorum-sasl-md5"

	clientURI    = "zookeeper/"
	zookeeperURI = "zookeeper-quorum/" + QuorumRealm // what ZooKeeper's servers use
	quorumURI    = zookeeperURI + "/"
)

// firstCount is the nonce count. Each nonce is used only once.
const firstCount = "00000001"

// response computes RFC 2831's response-value. method is AUTHENTICATE for the
// client's response and empty for the server's.
func response(f map[string]string, password, method string) string {
	secret := md5.Sum([]byte(narrow(f["username"]) + ":" + narrow(f["realm"]) + ":" + narrow(password))) //nolint:gosec // see above
	a1 := string(secret[:]) + ":" + f["nonce"] + ":" + f["cnonce"]
	if id := f["authzid"]; id != "" {
		a1 += ":" + id
	}
	return hash(hash(a1) + ":" + f["nonce"] + ":" + f["nc"] + ":" + f["cnonce"] + ":auth:" + hash(method+":"+f["digest-uri"]))
}

// authenticate is the method in the client's response.
const authenticate = "AUTHENTICATE"

// narrow converts text to ISO 8859-1 if possible. RFC 2831 hashes it in this form,
// although it is sent as UTF-8.
func narrow(s string) string {
	if !utf8.ValidString(s) {
		return s
	}
	b := make([]byte, 0, len(s))
	for _, c := range s {
		if c > unicode.MaxLatin1 {
			return s
		}
		b = append(b, byte(c))
	}
	return string(b)
}

// hash returns the MD5 of s in hex.
func hash(s string) string {
	h := md5.Sum([]byte(s)) //nolint:gosec // see above
	return hex.EncodeToString(h[:])
}

// directives splits name=value pairs, quoted or not, at commas.
func directives(s string) (map[string]string, error) {
	fields := map[string]string{}
	for s = strings.TrimLeft(s, ", "); s != ""; {
		name, rest, ok := strings.Cut(s, "=")
		if !ok {
			return nil, fmt.Errorf("%w: %q is not a directive", ErrRefused, s)
		}
		value, after, err := directiveValue(rest)
		if err != nil {
			return nil, err
		}
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := fields[name]; twice && name != "realm" { // a server may offer several realms
			return nil, fmt.Errorf("%w: duplicate directive %q", ErrRefused, name)
		}
		fields[name] = value
		s = strings.TrimLeft(after, ", ")
	}
	return fields, nil
}

// directiveValue reads one value. In a quoted value, a backslash escapes the next
// character.
func directiveValue(s string) (value, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		value, rest, _ = strings.Cut(s, ",")
		return strings.TrimSpace(value), rest, nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], nil
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return "", "", fmt.Errorf("%w: a quote is not closed", ErrRefused)
}

// quoted returns s in the form that directiveValue reads.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
