package quorum

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"
)

// TLS authenticates and encrypts the connections between servers, with a certificate on
// each side.
//
// The dialler checks that the certificate names the host that it has dialled. The
// accepting server learns from this package's handshake which server the caller claims to
// be, and checks that the certificate is valid for that server.
type TLS struct {
	// Config returns the configuration for the next handshake, in either role: the
	// certificate to show, and in ClientCAs the CAs that the other servers' certificates
	// are verified against. It is called for every handshake, on any goroutine. Its
	// VerifyConnection, if any, is called in either role, with the verified chains.
	Config func() *tls.Config
	// DialPlain makes this server call others in plaintext, for as long as some servers
	// don't use TLS yet. AcceptPlain makes it accept plaintext too.
	DialPlain, AcceptPlain bool
	// VerifyHost requires the certificate of a called server to name the host that was
	// dialled. VerifyCaller requires the same of a caller's certificate.
	VerifyHost, VerifyCaller bool
	// ReverseDNS also accepts a caller's certificate if it names a host that the caller's
	// address resolves to.
	ReverseDNS bool
	// Detect is the maximum wait for the first byte of a connection; default 5 s.
	Detect time.Duration
	// Hosts returns the hosts of the given server, and the hosts of all other servers.
	// Nil: none are known.
	Hosts func(server string) (its, others []string)
}

// recordHandshake is the first byte of a TLS connection. This package's handshake starts
// with a different byte.
const recordHandshake = 0x16

// maxDrain limits the bytes that we read from a refused caller before we close its
// connection. If we left unread bytes, the close would discard the answer with the
// reason.
const (
	maxDrain     = 64 << 10
	drainTimeout = time.Second
)

// client performs the TLS handshake with the server that was dialled at addr.
func (t *TLS) client(ctx context.Context, conn net.Conn, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	c := t.Config().Clone()
	c.ServerName = host
	c.DynamicRecordSizingDisabled = true // bulk data, not a browser that waits for its first byte
	// We verify the chain ourselves right below. Go's own check accepts only certificates
	// with hosts as alternative names, and ZooKeeper's users have others.
	c.InsecureSkipVerify = true
	more := c.VerifyConnection
	c.VerifyConnection = func(s tls.ConnectionState) error {
		chains, err := verifyServer(s.PeerCertificates, c.ClientCAs)
		if err == nil && more != nil {
			s.VerifiedChains = chains
			err = more(s)
		}
		if err == nil && t.VerifyHost {
			err = namesHost(s.PeerCertificates[0], host)
		}
		if err != nil {
			return &certificateError{s.PeerCertificates[0], err}
		}
		return nil
	}
	// We send the certificate even if no CA that the other side lists has signed it, so
	// that the other side can report which certificate it refuses.
	if len(c.Certificates) > 0 {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c.Certificates[0], nil }
	}
	stream := tls.Client(conn, c)
	if err := stream.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return &secureConn{Conn: stream, raw: conn}, nil
}

// server performs the TLS handshake with a caller and returns its certificate.
func (t *TLS) server(conn net.Conn, by time.Time) (net.Conn, *x509.Certificate, error) {
	c := t.Config().Clone()
	c.DynamicRecordSizingDisabled = true
	stream := tls.Server(conn, c)
	if err := conn.SetDeadline(by); err != nil {
		return nil, nil, err
	}
	if err := stream.HandshakeContext(context.Background()); err != nil {
		return nil, nil, err
	}
	var cert *x509.Certificate
	if certs := stream.ConnectionState().PeerCertificates; len(certs) > 0 {
		cert = certs[0]
	}
	return &secureConn{Conn: stream, raw: conn}, cert, conn.SetDeadline(time.Time{})
}

func verifyServer(chain []*x509.Certificate, roots *x509.CertPool) ([][]*x509.Certificate, error) {
	o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, c := range chain[1:] {
		o.Intermediates.AddCert(c)
	}
	return chain[0].Verify(o)
}

// mayBe checks that a caller's certificate is valid for the server that it claims to be.
// The certificate must name a host of that server or, for a server that is new here or
// has moved, the host that it calls from. A certificate that names only another server's
// host belongs to that server, wherever the call comes from.
func (t *TLS) mayBe(server string, cert *x509.Certificate, remote net.Addr) error {
	if t == nil || !t.VerifyCaller || cert == nil {
		return nil
	}
	var its, others []string
	if t.Hosts != nil {
		its, others = t.Hosts(server)
	}
	if slices.ContainsFunc(its, func(host string) bool { return namesHost(cert, host) == nil }) {
		return nil
	}
	for _, host := range others {
		if namesHost(cert, host) == nil {
			return &certificateError{cert, fmt.Errorf("it is another server's, the one at %s; server %s is known at %s", host, server, list(its))}
		}
	}
	from := hostOf(remote)
	if t.isAt(cert, from) {
		return nil
	}
	return &certificateError{cert, fmt.Errorf("it names neither a host of server %s, which is known at %s, nor %s, where the call comes from", server, list(its), from)}
}

// isAt reports whether a certificate names the host that a caller calls from.
func (t *TLS) isAt(cert *x509.Certificate, from string) bool {
	return namesHost(cert, from) == nil || t.ReverseDNS && namesAddress(cert, from)
}

func list(hosts []string) string {
	if len(hosts) == 0 {
		return "no host here"
	}
	return strings.Join(hosts, ", ")
}

// namesAddress reports whether cert names a host that the address resolves to.
func namesAddress(cert *x509.Certificate, ip string) bool {
	if net.ParseIP(ip) == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), HandshakeTimeout/2)
	defer cancel()
	hosts, err := net.DefaultResolver.LookupAddr(ctx, ip)
	return err == nil && slices.ContainsFunc(hosts, func(host string) bool {
		return namesHost(cert, strings.TrimSuffix(host, ".")) == nil
	})
}

// namesHost checks that a certificate is for a host. As in ZooKeeper, the common name
// counts if there are no alternative names.
func namesHost(cert *x509.Certificate, host string) error {
	if len(cert.DNSNames)+len(cert.IPAddresses) > 0 || cert.Subject.CommonName == "" {
		return cert.VerifyHostname(host)
	}
	byName := *cert
	if ip := net.ParseIP(cert.Subject.CommonName); ip != nil {
		byName.IPAddresses = []net.IP{ip}
	} else {
		byName.DNSNames = []string{cert.Subject.CommonName}
	}
	return byName.VerifyHostname(host)
}

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

// certificateError is the error of a certificate that failed verification.
type certificateError struct {
	cert *x509.Certificate
	err  error
}

func (e *certificateError) Error() string { return fmt.Sprintf("%s: %v", describe(e.cert), e.err) }
func (e *certificateError) Unwrap() error { return e.err }

// describe returns a description that lets an operator find the certificate.
func describe(c *x509.Certificate) string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return fmt.Sprintf("certificate of %q, number %x, by %q, for %v, valid until %s",
		c.Subject, c.SerialNumber, c.Issuer, names, c.NotAfter.UTC().Format(time.RFC3339))
}

// ours describes the certificate that this server shows.
func (t *TLS) ours() string {
	for _, c := range t.Config().Certificates {
		if c.Leaf != nil {
			return describe(c.Leaf)
		}
	}
	return "no certificate"
}

// explain converts a handshake error into the reason why two servers don't talk to each
// other, or Accepted if it gives none because the connection broke.
func (t *TLS) explain(err error) (Code, error) {
	var certificate *certificateError
	var verification *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	var op *net.OpError
	switch {
	case errors.As(err, &certificate):
		return BadCertificate, err
	case errors.As(err, &verification):
		return BadCertificate, &certificateError{verification.UnverifiedCertificates[0], verification.Err}
	case errors.As(err, &header):
		return NoTLS, nil
	case errors.As(err, &op) && op.Op == "remote error":
		return CertificateRefused, fmt.Errorf("%w (ours: %s)", op.Err, t.ours())
	case broken(err):
		return Accepted, nil
	}
	return NoAgreement, err
}

// broken reports whether an error concerns the connection and not the peer.
func broken(err error) bool {
	var n net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &n)
}

// secureConn is a TLS connection that behaves like a plain one.
//
// We send no close_notify alert, because it would wait for a peer that doesn't read. As in
// plaintext, the end of a stream therefore proves nothing. All messages between servers are
// framed, and we treat the end of a stream only as its loss.
type secureConn struct {
	*tls.Conn
	raw net.Conn
}

// Read implements net.Conn.
func (c *secureConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}

// Close implements net.Conn.
func (c *secureConn) Close() error { return c.raw.Close() }

// unreadConn returns a byte that has already been read before it reads from the
// connection.
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

// drain lets a refused caller read the reason.
func drain(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(drainTimeout))
	_, _ = io.CopyN(io.Discard, conn, maxDrain)
}
