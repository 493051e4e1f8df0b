package sasl

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
)

// Server is the server's side of one authentication. It is not safe for
// concurrent use.
type Server struct {
	users Users
	realm string
	uri   string // that a response has to be for; one that ends in a slash is a beginning
	nonce string
	asked bool // the challenge has been sent
	done  bool
}

// NewServer returns the side that authenticates a client, with a fresh nonce.
func NewServer(users Users) *Server { return newServer(users, Realm, clientURI) }

// NewQuorumServer authenticates a server that calls this one. Whoever calls must
// have made the response for this very purpose.
func NewQuorumServer(users Users, purpose string) *Server {
	return newServer(users, QuorumRealm, quorumURI+purpose)
}

func newServer(users Users, realm, uri string) *Server {
	var b [24]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	return &Server{users: users, realm: realm, uri: uri, nonce: base64.StdEncoding.EncodeToString(b[:])}
}

// Step takes a token from the client and returns the one to answer with. The
// first, whatever it is, is answered with a challenge, the second with the proof
// that the server knows the password too; then user is the authenticated name.
// A client may ask to act under another name: as with ZooKeeper, it gets its
// own.
func (x *Server) Step(in []byte) (out []byte, user string, err error) {
	switch {
	case x.done:
		return nil, "", fmt.Errorf("%w: the exchange is over", ErrRefused)
	case !x.asked:
		x.asked = true
		return []byte(`realm="` + x.realm + `",nonce="` + x.nonce + `",qop="auth",charset=utf-8,algorithm=md5-sess`), "", nil
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
	return []byte(proofPrefix + response(fields, x.users[user], "")), user, nil
}

// proofPrefix begins the server's last token.
const proofPrefix = "rspauth="

// verify checks everything that the client's response says.
func (x *Server) verify(f map[string]string) (string, error) {
	user, uri := f["username"], f["digest-uri"]
	password, known := x.users[user]
	switch {
	case f["nonce"] != x.nonce:
		return "", fmt.Errorf("%w: another nonce", ErrRefused)
	case f["nc"] != firstCount:
		return "", fmt.Errorf("%w: nonce count %q", ErrRefused, f["nc"])
	case f["qop"] != "" && f["qop"] != "auth":
		return "", fmt.Errorf("%w: quality of protection %q", ErrRefused, f["qop"])
	case uri != x.uri && !(strings.HasSuffix(x.uri, "/") && strings.HasPrefix(uri, x.uri)):
		return "", fmt.Errorf("%w: digest-uri %q", ErrRefused, uri)
	}
	want := response(f, password, authenticate)
	if subtle.ConstantTimeCompare([]byte(want), []byte(f["response"])) != 1 || !known {
		return "", fmt.Errorf("%w: wrong password for %q", ErrRefused, user)
	}
	return user, nil
}
