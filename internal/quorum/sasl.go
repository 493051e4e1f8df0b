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

// SASL lets servers prove to one another that they know a password, at the
// beginning of every connection and in both directions, by DIGEST-MD5. It
// protects nothing of what is said afterwards: that takes TLS.
type SASL struct {
	// Users may call this server.
	Users sasl.Users
	// User and Password are what this server shows when it calls another.
	User, Password string
	// Login makes this server authenticate with whom it calls, and talk to nobody
	// who does not take that or does not know the password himself. Without, it
	// calls as if there were no SASL: while not all of the others take it.
	Login bool
	// Require lets nobody in who does not authenticate.
	Require bool
}

// With SASL the handshake takes two messages each way, and so one round trip
// more than without:
//
//	the dialler         hello of saslVersion
//	the server it calls hello with the code challenged, challenge
//	the dialler         response
//	the server it calls hello with its answer, proof
//
// A hello of the server that refuses before it knows the caller is the last, and
// says nothing of who the server is. Nothing that either side says is acted upon
// before it has proved that it knows the password. The response, and so the proof, is
// made for the dialler's hello: nobody can use it to be another server, or to
// open a stream of another kind, or at the server that has made it.

// maxToken bounds what SASL sends at once: RFC 2831 does it so.
const maxToken = 4096

// purpose is what a response is for.
func purpose(h *hello) string {
	sum := sha256.Sum256(h.append(nil))
	return hex.EncodeToString(sum[:])
}

// login is the dialler's half, behind its hello. It returns the answer of a
// server that has proved to know the password, or that refuses before that.
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

// unproved is what remains of the answer of a server that has proved nothing: it
// may refuse, for reasons that have to do with how servers prove who they are.
func unproved(answer hello) hello {
	answer.from = Identity{}
	switch answer.code {
	case WrongVersion, NeedTLS, NoSASL, BadLogin:
	default:
		answer.code = BadProof
	}
	return answer
}

// challenge is the other half, for a caller that has said hello. It returns the
// proof that goes behind the answer. An error of type *saslError is for the
// caller to know.
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
		err = errors.New("it is what this server has said itself to another")
	}
	if err != nil {
		return nil, &saslError{BadLogin, err}
	}
	return proof, nil
}

// authenticate finds out whether a caller may be believed, with the proof that
// the answer takes. What is not Accepted is to be told to the caller.
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

// saslError says that two servers do not agree on a password.
type saslError struct {
	code Code
	err  error
}

func (e *saslError) Error() string { return e.err.Error() }
func (e *saslError) Unwrap() error { return e.err }

// asKnownHere turns what was told to a caller into what this server knows of it.
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

var errToken = fmt.Errorf("quorum: a token of SASL of more than %d bytes", maxToken)

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
