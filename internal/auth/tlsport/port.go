package tlsport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/internal/auth/certs"
	"github.com/zkgo/zkgo/proto"
)

// Scheme is the scheme of the identity that a verified certificate proves.
const Scheme = "x509"

// RecordHandshake is the first byte of a TLS connection: the type of the record with the
// client hello. No request and no four-letter word begins with this byte: as the first byte
// of a frame length, it would mean at least 352 megabytes.
const RecordHandshake = 0x16

// Port is the common state of the connections of a TLS listener.
type Port struct {
	config    *tls.Config
	host      certs.HostCheck
	superUser string
	optional  bool // a client may continue in plaintext
}

// New returns a Port. config is for the handshake, and host checks the certificate of a
// client. superUser is the subject of the super user's certificate.
func New(config *tls.Config, host certs.HostCheck, superUser string) *Port {
	return &Port{config: config, host: host, superUser: superUser}
}

// Secure reports whether every connection uses TLS. A nil Port is one without TLS.
func (p *Port) Secure() bool { return p != nil && !p.optional }

// Wrap returns an accepted connection with the port's TLS.
func (p *Port) Wrap(nc net.Conn) *Conn { return &Conn{Conn: nc, port: p} }

// AsOptional returns a copy for a port that also accepts plaintext clients.
func (p *Port) AsOptional() *Port {
	q := *p
	q.optional = true
	return &q
}

// Conn is a client's connection with TLS or, on an optional port, perhaps without.
type Conn struct {
	net.Conn
	port *Port
	// stream is nil until the handshake, and stays nil in plaintext.
	stream atomic.Pointer[tls.Conn]

	// Used only by the reader: a byte that WaitRead has read ahead.
	first [1]byte
	ahead bool
}

// Identify detects the client's protocol, does the handshake if it is TLS, and returns the
// identities that the certificate proves. It waits for the client. We close the connection
// if it has no session for too long.
func (c *Conn) Identify() ([]proto.ID, error) {
	err := c.WaitRead()
	switch {
	case c.port.optional && (err != nil || c.first[0] != RecordHandshake):
		return nil, nil // the reader will get the error again
	case err != nil:
		return nil, err
	case c.first[0] != RecordHandshake:
		return nil, errNotTLS
	}
	c.ahead = false
	stream := tls.Server(&unreadConn{Conn: c.Conn, first: c.first[:]}, c.port.config)
	c.stream.Store(stream)
	if err := stream.Handshake(); err != nil {
		return nil, err
	}
	state := stream.ConnectionState()
	if err := c.port.host.Check(state, c.RemoteAddr()); err != nil {
		return nil, err
	}
	if len(state.VerifiedChains) == 0 {
		return nil, nil
	}
	subject, err := certs.Subject(state.PeerCertificates[0])
	if err != nil {
		return nil, err
	}
	ids := []proto.ID{{Scheme: Scheme, ID: subject}}
	if c.port.superUser != "" && subject == c.port.superUser {
		ids = append(ids, proto.ID{Scheme: "super", ID: subject})
	}
	return ids, nil
}

// State returns the state of the connection's TLS, or nil in plaintext.
func (c *Conn) State() *tls.ConnectionState {
	stream := c.stream.Load()
	if stream == nil {
		return nil
	}
	state := stream.ConnectionState()
	return &state
}

// WaitRead waits for the first byte of a request, so that we don't need the buffer for the
// rest before that.
func (c *Conn) WaitRead() error {
	if c.ahead {
		return nil
	}
	n, err := c.read(c.first[:])
	c.ahead = n > 0
	if n > 0 {
		return nil
	}
	return err
}

// Read implements net.Conn. After the byte that WaitRead got, it may block, because a
// request is longer than one byte.
func (c *Conn) Read(b []byte) (int, error) {
	if !c.ahead || len(b) == 0 {
		return c.read(b)
	}
	c.ahead = false
	b[0] = c.first[0]
	if len(b) == 1 {
		return 1, nil
	}
	n, err := c.read(b[1:])
	if n == 0 && err != nil {
		return 1, nil // the next call returns the error again
	}
	return n + 1, nil
}

func (c *Conn) read(b []byte) (int, error) {
	if s := c.stream.Load(); s != nil {
		return s.Read(b)
	}
	return c.Conn.Read(b)
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	if s := c.stream.Load(); s != nil {
		return s.Write(b)
	}
	return c.Conn.Write(b)
}

// closeTimeout bounds how long a client may delay the close of its connection.
const closeTimeout = time.Second

// Close implements net.Conn. It may wait for the client to read the close notification, but
// not for longer than closeTimeout. We need the limit because crypto/tls answers key updates
// while it reads, and holds the lock that the close notification needs: without the limit,
// we could never close a client that doesn't read the answers.
func (c *Conn) Close() error {
	s := c.stream.Load()
	if s == nil {
		return c.Conn.Close()
	}
	late := time.AfterFunc(closeTimeout, func() { _ = c.Conn.Close() })
	defer late.Stop()
	return s.Close()
}

// errNotTLS reports a plaintext client on a port that requires TLS.
var errNotTLS = errors.New("the client does not use TLS, which this port requires")

// Explain explains why a connection was closed.
func Explain(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("it took too long: %w", err)
	}
	return certs.Explain(err)
}
