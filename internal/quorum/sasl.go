package quorum

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/zkgo/zkgo/internal/sasl"
)

// SASL lets servers prove to one another that they know a password, at the start of every
// connection and in both directions, with DIGEST-MD5. It doesn't protect later traffic:
// that requires TLS.
type SASL struct {
	// Users are the accounts that may call this server.
	Users map[string]string
	// User and Password are this server's credentials when it calls another server.
	User, Password string
	// Login makes this server authenticate the servers that it calls. It then talks only to
	// servers that use SASL and know the password. Without Login, it calls other servers as
	// if there were no SASL, which is useful while some servers don't use it yet.
	Login bool
	// Require makes this server refuse callers that don't authenticate.
	Require bool
}

// With SASL the handshake has two messages in each direction, i.e. one more round trip:
//
//	the dialler         hello of saslVersion
//	the server it calls hello with the code challenged, challenge
//	the dialler         response
//	the server it calls hello with its answer, proof
//
// If the server refuses before it has authenticated the caller, its hello is the last
// message and contains nothing about the server's identity. Neither side acts on a message
// of the other before the other has proved that it knows the password. We compute the
// response, and thus the proof, over the dialler's hello, so that an attacker can't use it
// to impersonate another server, to open a stream of another kind, or to log in at the
// server that created it.

// maxToken bounds one SASL token, as in RFC 2831.
const maxToken = 4096

// purpose returns the data that a response is bound to.
func purpose(h *hello) string {
	sum := sha256.Sum256(h.append(nil))
	return hex.EncodeToString(sum[:])
}

// login is the dialler's half, after its hello. It returns the answer of a server that
// has proved that it knows the password, or that refuses before that.
func (s *SASL) login(conn net.Conn, said *hello, by time.Time) (hello, error) {
	answer, err := readHello(conn, by)
	if err != nil || answer.code != challenged {
		return unproved(answer), err
	}
	client := sasl.NewQuorumClient(s.User, s.Password, purpose(said))
	if _, _, err := client.Next(nil); err != nil {
		return answer, err
	}
	challenge, err := readToken(conn, by)
	if err != nil {
		return answer, err
	}
	response, _, err := client.Next(challenge)
	if err != nil {
		return answer, &saslError{BadProof, err}
	}
	if err := write(conn, appendToken(nil, response), by); err != nil {
		return answer, err
	}
	answer, err = readHello(conn, by)
	if err != nil || answer.code == BadLogin {
		return unproved(answer), err
	}
	proof, err := readToken(conn, by)
	if err != nil {
		return answer, err
	}
	if _, _, err = client.Next(proof); err != nil {
		return answer, &saslError{BadProof, err}
	}
	return answer, nil
}

// unproved returns the part of an answer that we accept from a server that has proved
// nothing: it may only refuse, for reasons that concern authentication itself.
func unproved(answer hello) hello {
	answer.from = Identity{}
	switch answer.code {
	case WrongVersion, NeedTLS, NoSASL, BadLogin:
	default:
		answer.code = BadProof
	}
	return answer
}

// challenge is the accepting server's half, for a caller that has sent its hello. It
// returns the proof that is sent after the answer. The caller learns about an error of
// type *saslError.
func (s *SASL) challenge(conn net.Conn, said *hello, ours Identity, by time.Time) ([]byte, error) {
	server := sasl.NewQuorumServer(s.Users, purpose(said))
	challenge, _, err := server.Step(nil)
	if err != nil {
		return nil, err
	}
	ask := hello{version: saslVersion, kind: said.kind, code: challenged, to: said.from.ServerID}
	if err := write(conn, appendToken(ask.append(nil), challenge), by); err != nil {
		return nil, err
	}
	response, err := readToken(conn, by)
	if err != nil {
		return nil, err
	}
	proof, _, err := server.Step(response)
	if err == nil && said.from.Nonce != 0 && said.from.Nonce == ours.Nonce {
		err = errors.New("it is this server's own response to another server")
	}
	if err != nil {
		return nil, &saslError{BadLogin, err}
	}
	return proof, nil
}

// authenticate decides whether to trust a caller, and returns the proof for the answer.
// The caller receives any code except Accepted.
func (s *SASL) authenticate(conn net.Conn, said *hello, ours Identity, by time.Time) (proof []byte, code Code, err error) {
	switch {
	case said.version == saslVersion && s == nil:
		return nil, NoSASL, nil
	case said.version == saslVersion:
		proof, err = s.challenge(conn, said, ours, by)
		if refused := (*saslError)(nil); errors.As(err, &refused) {
			return nil, refused.code, refused.err
		}
		return proof, Accepted, err
	case s != nil && s.Require:
		return nil, NeedSASL, nil
	}
	return nil, Accepted, nil
}

// saslError reports that two servers don't agree on a password.
type saslError struct {
	code Code
	err  error
}

func (e *saslError) Error() string { return e.err.Error() }
func (e *saslError) Unwrap() error { return e.err }

// asKnownHere converts a code sent to a caller into this server's own code for the
// refusal.
func (c Code) asKnownHere() Code {
	switch c {
	case NeedSASL:
		return NoLogin
	case NoSASL:
		return UnwantedLogin
	}
	return c
}

func appendToken(b, token []byte) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(token))), token...)
}

var errToken = fmt.Errorf("quorum: a SASL token of more than %d bytes", maxToken)

func readToken(c net.Conn, by time.Time) ([]byte, error) {
	if err := c.SetReadDeadline(by); err != nil {
		return nil, err
	}
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint16(size[:])
	if n > maxToken {
		return nil, errToken
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	return b, c.SetReadDeadline(time.Time{})
}

func write(c net.Conn, b []byte, by time.Time) error {
	if err := c.SetWriteDeadline(by); err != nil {
		return err
	}
	if _, err := c.Write(b); err != nil {
		return err
	}
	return c.SetWriteDeadline(time.Time{})
}
