package client

import (
	"crypto/md5" //nolint:gosec // DIGEST-MD5 is what the servers speak
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// SASLMechanism begins a conversation for every connection. It must be safe for
// concurrent use.
type SASLMechanism interface {
	// Begin is given the host's name as the connect string has it.
	Begin(host string) SASLConversation
}

// SASLConversation is the client's side of one authentication.
type SASLConversation interface {
	// Next takes the server's token, nil for the first call, and returns the one to
	// answer with. done says that the server's answer to it, if any, is the last
	// word; a nil token with done is not sent.
	Next(challenge []byte) (response []byte, done bool, err error)
}

// DigestMD5 is the mechanism that ZooKeeper's servers call DIGEST-MD5 and
// configure with a JAAS section of DigestLoginModule. It is historic: it hides
// the password from who listens, but not from who tries many. Prefer TLS.
func DigestMD5(user, password string) SASLMechanism { return digestMD5{user, password} }

type digestMD5 struct{ user, password string }

// Begin implements [SASLMechanism]. ZooKeeper's clients all name this host,
// whatever the server's is.
func (m digestMD5) Begin(string) SASLConversation {
	return &digestTalk{digestMD5: m, uri: "zookeeper/zk-sasl-md5"}
}

type digestTalk struct {
	digestMD5
	uri   string
	step  int
	proof string // what the server has to answer
}

// Next implements [SASLConversation].
func (d *digestTalk) Next(in []byte) ([]byte, bool, error) {
	d.step++
	switch d.step {
	case 1:
		return []byte{}, false, nil
	case 2:
		out, err := d.respond(string(in))
		return out, false, err
	}
	got := strings.TrimPrefix(string(in), "rspauth=")
	if subtle.ConstantTimeCompare([]byte(got), []byte(d.proof)) != 1 {
		return nil, true, errors.New("the server does not know the password")
	}
	return nil, true, nil
}

// respond answers the challenge (RFC 2831, section 2.1.2).
func (d *digestTalk) respond(challenge string) ([]byte, error) {
	f, err := parseDirectives(challenge)
	if err != nil {
		return nil, err
	}
	nonce, realm := f["nonce"], f["realm"]
	switch {
	case nonce == "":
		return nil, errors.New("a challenge without nonce")
	case f["algorithm"] != "md5-sess":
		return nil, fmt.Errorf("algorithm %q", f["algorithm"])
	}
	var b [16]byte
	rand.Read(b[:])
	cnonce := hex.EncodeToString(b[:])
	latin, enc := narrowed, ""
	if f["charset"] == "utf-8" {
		enc = ",charset=utf-8"
	}
	secret := md5.Sum([]byte(latin(d.user) + ":" + latin(realm) + ":" + latin(d.password))) //nolint:gosec // see above
	a1 := md5hex(string(secret[:]) + ":" + nonce + ":" + cnonce)
	digest := func(method string) string {
		return md5hex(a1 + ":" + nonce + ":00000001:" + cnonce + ":auth:" + md5hex(method+":"+d.uri))
	}
	d.proof = digest("")
	return []byte(fmt.Sprintf(`username=%s,realm=%s,nonce=%s,nc=00000001,cnonce="%s",digest-uri="%s",maxbuf=65536,response=%s,qop=auth%s`,
		quoted(d.user), quoted(realm), quoted(nonce), cnonce, d.uri, digest("AUTHENTICATE"), enc)), nil
}

func md5hex(s string) string {
	sum := md5.Sum([]byte(s)) //nolint:gosec // see above
	return hex.EncodeToString(sum[:])
}

// narrowed turns text that ISO 8859-1 can express into that: so it is hashed,
// although it travels as UTF-8.
func narrowed(s string) string {
	b := make([]byte, 0, len(s))
	for _, c := range s {
		if c > 0xff {
			return s
		}
		b = append(b, byte(c))
	}
	return string(b)
}

func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// parseDirectives splits name=value pairs, quoted or not, at commas.
func parseDirectives(s string) (map[string]string, error) {
	f := map[string]string{}
	for s = strings.TrimLeft(s, ", "); s != ""; s = strings.TrimLeft(s, ", ") {
		name, rest, ok := strings.Cut(s, "=")
		if !ok {
			return nil, fmt.Errorf("%q is no directive", s)
		}
		var value strings.Builder
		i := 0
		if strings.HasPrefix(rest, `"`) {
			for i = 1; i < len(rest) && rest[i] != '"'; i++ {
				if rest[i] == '\\' && i+1 < len(rest) {
					i++
				}
				value.WriteByte(rest[i])
			}
			if i == len(rest) {
				return nil, errors.New("a quote is not closed")
			}
			i++
		} else {
			for ; i < len(rest) && rest[i] != ','; i++ {
				value.WriteByte(rest[i])
			}
		}
		f[strings.ToLower(strings.TrimSpace(name))] = value.String()
		s = rest[i:]
	}
	return f, nil
}
