package sasl

import (
	"crypto/md5" //nolint:gosec // DIGEST-MD5 is what the clients speak
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Realm is the realm that ZooKeeper's server names.
const Realm = "zk-sasl-md5"

// ErrRefused reports a wrong user, password or response.
var ErrRefused = errors.New("sasl: authentication refused")

// Exchange is one client's authentication. It is not safe for concurrent use.
type Exchange struct {
	users Users
	nonce string
	asked bool // the challenge has been sent
	done  bool
}

// NewExchange returns an exchange with a fresh nonce.
func NewExchange(users Users) *Exchange {
	var b [24]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	return &Exchange{users: users, nonce: base64.StdEncoding.EncodeToString(b[:])}
}

// Step takes a token from the client and returns the one to answer with. The
// first, whatever it is, is answered with a challenge, the second with the proof
// that the server knows the password too; then user is the authenticated name.
// A client may ask to act under another name: as with ZooKeeper, it gets its
// own.
func (x *Exchange) Step(in []byte) (out []byte, user string, err error) {
	switch {
	case x.done:
		return nil, "", fmt.Errorf("%w: the exchange is over", ErrRefused)
	case !x.asked:
		x.asked = true
		return []byte(`realm="` + Realm + `",nonce="` + x.nonce + `",qop="auth",charset=utf-8,algorithm=md5-sess`), "", nil
	}
	x.done = true
	fields, err := directives(string(in))
	if err != nil {
		return nil, "", err
	}
	user, err = x.verify(fields)
	if err != nil {
		return nil, "", err
	}
	return []byte("rspauth=" + response(fields, x.users[user], "")), user, nil
}

// verify checks everything that the client's response says.
func (x *Exchange) verify(f map[string]string) (string, error) {
	user := f["username"]
	password, known := x.users[user]
	switch {
	case f["nonce"] != x.nonce:
		return "", fmt.Errorf("%w: another nonce", ErrRefused)
	case f["nc"] != "00000001":
		return "", fmt.Errorf("%w: nonce count %q", ErrRefused, f["nc"])
	case f["qop"] != "" && f["qop"] != "auth":
		return "", fmt.Errorf("%w: quality of protection %q", ErrRefused, f["qop"])
	case !strings.HasPrefix(f["digest-uri"], "zookeeper/"):
		return "", fmt.Errorf("%w: digest-uri %q", ErrRefused, f["digest-uri"])
	}
	want := response(f, password, "AUTHENTICATE")
	if subtle.ConstantTimeCompare([]byte(want), []byte(f["response"])) != 1 || !known {
		return "", fmt.Errorf("%w: wrong password for %q", ErrRefused, user)
	}
	return user, nil
}

// response computes RFC 2831's response-value; method is AUTHENTICATE for the
// client's, empty for the server's.
func response(f map[string]string, password, method string) string {
	secret := md5.Sum([]byte(narrow(f["username"]) + ":" + narrow(f["realm"]) + ":" + narrow(password))) //nolint:gosec // see above
	a1 := string(secret[:]) + ":" + f["nonce"] + ":" + f["cnonce"]
	if id := f["authzid"]; id != "" {
		a1 += ":" + id
	}
	return hash(hash(a1) + ":" + f["nonce"] + ":" + f["nc"] + ":" + f["cnonce"] + ":auth:" + hash(method+":"+f["digest-uri"]))
}

// narrow turns text that ISO 8859-1 can express into that: so RFC 2831 wants it
// hashed, although it travels as UTF-8.
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
	for s != "" {
		name, rest, ok := strings.Cut(s, "=")
		if !ok {
			return nil, fmt.Errorf("%w: %q is no directive", ErrRefused, s)
		}
		value, after, err := directiveValue(rest)
		if err != nil {
			return nil, err
		}
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := fields[name]; twice {
			return nil, fmt.Errorf("%w: directive %q stands twice", ErrRefused, name)
		}
		fields[name] = value
		s = strings.TrimLeft(after, ", ")
	}
	return fields, nil
}

// directiveValue reads one value, in which a backslash quotes inside quotes.
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
