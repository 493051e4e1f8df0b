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
	uri   string // the digest-uri that a response must have, or its prefix if uri ends in a slash
	nonce string
	asked bool // the challenge has been sent
	done  bool
}

// NewServer returns a Server that authenticates a client, with a fresh nonce.
func NewServer(users Users) *Server { return newServer(users, Realm, clientURI) }

// NewQuorumServer returns a Server that authenticates another server of the ensemble.
// The other server must have made its response for this purpose.
func NewQuorumServer(users Users, purpose string) *Server {
	return newServer(users, QuorumRealm, quorumURI+purpose)
}

// NewLeaderServer returns a Server that authenticates a learner of ZooKeeper
// (quorum.auth.enableSasl).
func NewLeaderServer(users Users) *Server { return newServer(users, QuorumRealm, zookeeperURI) }

func newServer(users Users, realm, uri string) *Server {
	var b [24]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	return &Server{users: users, realm: realm, uri: uri, nonce: base64.StdEncoding.EncodeToString(b[:])}
}

// Step returns the server's reply to a token from the client. The reply to the first token
// is always a challenge. The reply to the second one proves that the server knows the
// password too, and user is then the authenticated name. If a client asks to act under
// another name, it gets its own name, as with ZooKeeper.
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

// proofPrefix starts the server's last token.
const proofPrefix = "rspauth="

// verify checks the client's response and returns the user's name.
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
