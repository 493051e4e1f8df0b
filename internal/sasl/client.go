package sasl

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// ErrServer means that the server did not prove that it knows the password.
var ErrServer = errors.New("the server does not know the password")

// Client is the client's side of one authentication. It is not safe for
// concurrent use.
type Client struct {
	user, password, uri string
	step                int
	proof               string // the expected proof from the server
}

// NewClient returns a Client that logs in to a server as a ZooKeeper client. All ZooKeeper
// clients use the same host in the digest-uri, regardless of the server's host.
func NewClient(user, password string) *Client {
	return &Client{user: user, password: password, uri: clientURI + Realm}
}

// NewQuorumClient returns a Client that logs in to another server of the ensemble.
// The other server must expect the same purpose.
func NewQuorumClient(user, password, purpose string) *Client {
	return &Client{user: user, password: password, uri: quorumURI + purpose}
}

// NewLearnerClient returns a Client that logs in to the leader of an Apache ZooKeeper
// ensemble as one of its servers (quorum.auth.enableSasl).
func NewLearnerClient(user, password string) *Client {
	return &Client{user: user, password: password, uri: zookeeperURI}
}

// Next returns the response to the server's token, which is nil for the first call. When
// done is true and err is nil, the server has proved that it knows the password, and there
// is no response.
func (c *Client) Next(in []byte) (out []byte, done bool, err error) {
	c.step++
	switch c.step {
	case 1:
		return []byte{}, false, nil
	case 2:
		out, err := c.respond(string(in))
		return out, false, err
	}
	got := strings.TrimPrefix(string(in), proofPrefix)
	if subtle.ConstantTimeCompare([]byte(got), []byte(c.proof)) != 1 {
		return nil, true, ErrServer
	}
	return nil, true, nil
}

// respond returns the response to the challenge (RFC 2831, section 2.1.2).
func (c *Client) respond(challenge string) ([]byte, error) {
	f, err := directives(challenge)
	if err != nil {
		return nil, err
	}
	switch {
	case f["nonce"] == "":
		return nil, errors.New("a challenge without nonce")
	case f["algorithm"] != "md5-sess":
		return nil, fmt.Errorf("algorithm %q", f["algorithm"])
	}
	var b [16]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	charset := ""
	if f["charset"] == "utf-8" {
		charset = ",charset=utf-8"
	}
	f = map[string]string{"username": c.user, "realm": f["realm"], "nonce": f["nonce"], "nc": firstCount,
		"cnonce": hex.EncodeToString(b[:]), "digest-uri": c.uri}
	c.proof = response(f, c.password, "")
	return []byte(fmt.Sprintf(`username=%s,realm=%s,nonce=%s,nc=%s,cnonce="%s",digest-uri="%s",maxbuf=65536,response=%s,qop=auth%s`,
		quoted(c.user), quoted(f["realm"]), quoted(f["nonce"]), firstCount, f["cnonce"], c.uri,
		response(f, c.password, authenticate), charset)), nil
}
