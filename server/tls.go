package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/keystore"
)

// KeyStores are the key store and the trust store of a port, and what the port asks of
// the other side.
type KeyStores = keystore.Options

// TLS configures TLS for clients.
type TLS struct {
	KeyStores
	// Config, if set, replaces KeyStores except for VerifyClientHost.
	Config *tls.Config
	// SuperUser is the subject, in the form of [keystore.Subject], of the certificate
	// whose owner has every permission.
	SuperUser string
}

// schemeX509 is the scheme of the identity that a verified certificate proves.
const schemeX509 = "x509"

// recordHandshake is the first byte of a TLS connection: the type of the record with
// the client hello. No request and no four-letter word begins with it; as a frame
// length it would be at least 352 megabytes.
const recordHandshake = 0x16

// tlsPort is what the connections of a TLS listener share.
type tlsPort struct {
	config    *tls.Config
	options   keystore.Options
	superUser string
	optional  bool // a client may continue in plaintext
}

// newTLSPort reads the key stores.
func newTLSPort(t *TLS, log *slog.Logger) (*tlsPort, error) {
	p := &tlsPort{config: t.Config, options: t.KeyStores, superUser: t.SuperUser}
	if p.config != nil {
		return p, nil
	}
	var err error
	p.config, err = keystore.ServerConfig(t.KeyStores, func(err error) { log.Error("TLS goes on with what it has", "error", err) })
	if err != nil {
		return nil, fmt.Errorf("TLS for clients: %w", err)
	}
	return p, nil
}

// asOptional returns a copy for a port that also accepts plaintext clients.
func (p *tlsPort) asOptional() *tlsPort {
	q := *p
	q.optional = true
	return &q
}

// tlsConn is a client's connection with TLS or, on an optional port, perhaps without.
type tlsConn struct {
	net.Conn
	port *tlsPort
	// stream is nil until the handshake, and stays nil in plaintext.
	stream atomic.Pointer[tls.Conn]

	// Used only by the reader: a byte that WaitRead has read ahead.
	first [1]byte
	ahead bool
}

// identify detects the client's protocol, does the handshake if it is TLS, and returns
// the identities that the certificate proves. It waits for the client; like any
// connection without a session, this one is closed if that takes too long.
func (c *tlsConn) identify() ([]proto.ID, error) {
	err := c.WaitRead()
	switch {
	case c.port.optional && (err != nil || c.first[0] != recordHandshake):
		return nil, nil // the reader gets the error again
	case err != nil:
		return nil, err
	case c.first[0] != recordHandshake:
		return nil, errNotTLS
	}
	c.ahead = false
	stream := tls.Server(&unreadConn{Conn: c.Conn, first: c.first[:]}, c.port.config)
	c.stream.Store(stream)
	if err := stream.Handshake(); err != nil {
		return nil, err
	}
	state := stream.ConnectionState()
	if err := c.port.options.VerifyHost(state, c.RemoteAddr()); err != nil {
		return nil, err
	}
	if len(state.VerifiedChains) == 0 {
		return nil, nil
	}
	subject, err := keystore.Subject(state.PeerCertificates[0])
	if err != nil {
		return nil, err
	}
	ids := []proto.ID{{Scheme: schemeX509, ID: subject}}
	if c.port.superUser != "" && subject == c.port.superUser {
		ids = append(ids, proto.ID{Scheme: "super", ID: subject})
	}
	return ids, nil
}

// WaitRead waits for the first byte of a request, so that the buffer for the rest is
// needed only then.
func (c *tlsConn) WaitRead() error {
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

// Read implements net.Conn. After the byte that WaitRead got it may block: a request is
// longer than that.
func (c *tlsConn) Read(b []byte) (int, error) {
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

func (c *tlsConn) read(b []byte) (int, error) {
	if s := c.stream.Load(); s != nil {
		return s.Read(b)
	}
	return c.Conn.Read(b)
}

// Write implements net.Conn.
func (c *tlsConn) Write(b []byte) (int, error) {
	if s := c.stream.Load(); s != nil {
		return s.Write(b)
	}
	return c.Conn.Write(b)
}

// closeTimeout bounds how long a client may delay the close of its connection.
const closeTimeout = time.Second

// Close implements net.Conn. It may wait for the client to take the close notification,
// but not for longer than closeTimeout. crypto/tls answers key updates while it reads, and
// holds the lock that it needs for the close notification; a client that doesn't take the
// answers would otherwise never be closed.
func (c *tlsConn) Close() error {
	s := c.stream.Load()
	if s == nil {
		return c.Conn.Close()
	}
	late := time.AfterFunc(closeTimeout, func() { _ = c.Conn.Close() })
	defer late.Stop()
	return s.Close()
}

// unreadConn is a connection with one byte already read. Until the handshake is over,
// only the goroutine that does it reads.
type unreadConn struct {
	net.Conn
	first []byte
}

func (c *unreadConn) Read(b []byte) (int, error) {
	if len(c.first) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.first)
	c.first = c.first[n:]
	return n, nil
}

// secured does the handshake with a client that connected to a TLS port.
func (c *conn) secured() bool {
	t, ok := c.nc.(*tlsConn)
	if !ok {
		return true
	}
	st := &c.s.stats
	st.handshaking.Add(1)
	ids, err := t.identify()
	st.handshaking.Add(-1)
	if err != nil {
		st.handshakesFailed.Add(1)
		select {
		case <-c.s.done:
			return false
		default:
		}
		c.complain("closing a client: the TLS handshake failed", "error", handshakeError(err))
		return false
	}
	if !c.session.addIdentities(ids...) {
		return false
	}
	for _, id := range ids {
		if id.Scheme == "super" {
			c.s.log.Info("a client is the super user by its certificate", "client", c.nc.RemoteAddr(), "subject", id.ID)
		}
	}
	return true
}

// errNotTLS reports a plaintext client on a port that requires TLS.
var errNotTLS = errors.New("the client does not speak TLS, as it has to on this port")

// handshakeError explains why a connection was closed.
func handshakeError(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("it has taken too long: %w", err)
	}
	return keystore.Explain(err)
}

// tlsFromZooCfg translates the ssl.* settings for clients, if a port uses them.
func (c *Config) tlsFromZooCfg(z *zoocfg.Config) error {
	secure, unified := z.SecureClientPort != zoocfg.Unset, z.PortUnification && c.ClientAddr != ""
	if !secure && !unified {
		return nil
	}
	t := &z.TLS
	switch {
	case z.Auth.SSLScheme != schemeX509:
		return fmt.Errorf("ssl.authProvider is %q: a certificate is an identity of the scheme %s and no other here", z.Auth.SSLScheme, schemeX509)
	case t.KeyStore.Location == "":
		return zoocfg.NotSet("ssl.keyStore.location", "a port with TLS needs a certificate")
	}
	if secure {
		c.SecureAddr = net.JoinHostPort(z.SecureClientPortAddress, strconv.Itoa(z.SecureClientPort))
	}
	c.PortUnification = unified
	c.TLS = &TLS{
		KeyStores: KeyStores{
			Key: storeOf(t.KeyStore), Trust: storeOf(t.TrustStore), ClientAuth: t.ClientAuth,
			Protocols: protocolsOf(t), CipherSuites: t.CipherSuites,
			VerifyClientHost: t.HostnameVerification && t.ClientHostnameVerification, ReverseDNS: t.AllowReverseDNSLookup, Reload: t.CertReload,
			CRL: t.CRL, OCSP: t.OCSP,
		},
		SuperUser: z.Auth.X509SuperUser,
	}
	return nil
}

func storeOf(s zoocfg.Store) keystore.Store {
	return keystore.Store{Location: s.Location, Password: s.Password, PasswordPath: s.PasswordPath, Type: s.Type}
}

// protocolsOf returns the TLS versions to offer. ssl.protocol limits them only if it
// names a version.
func protocolsOf(t *zoocfg.TLS) []string {
	if len(t.EnabledProtocols) == 0 && strings.HasPrefix(t.Protocol, "TLSv") {
		return []string{t.Protocol}
	}
	return t.EnabledProtocols
}
