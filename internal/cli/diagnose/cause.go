package diagnose

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/zkgo/zkgo/client"
)

// Terms are a command's advice after a failed connect: the names of flags, and hints. The failures
// and their causes are the same for all commands.
type Terms struct {
	CA     string // the flag for the authorities to trust
	Cert   string // the flags for the client's certificate
	Name   string // hint for a certificate without the host's name
	Auth   string // the flags for identities
	UseTLS string // hint for a port that expects TLS
	NoTLS  string // hint for a port that doesn't speak TLS
	Closed string // hint for a port that closes the connection
	Serves string // hint for a port that does so and answers srvr
}

// ClientTerms are the terms of the commands that connect as clients.
func ClientTerms() Terms {
	return Terms{
		CA: "--tls-ca", Cert: "--tls-cert and --tls-key", Auth: "--auth and --sasl",
		Name:   "connect with a host name that is in the certificate, or use --tls-server-name",
		UseTLS: "use --tls (with --tls-ca and --tls-cert if needed), or the port for plaintext clients",
		NoTLS:  "omit the --tls flags, or use its port for TLS clients (secureClientPort)",
		Closed: "it may not serve (no quorum), refuse more connections from here (maxClientCnxns), " +
			"be behind what this client has seen, expect TLS (--tls), or not be a port for ZooKeeper clients",
		Serves: "it serves, but closed this connection: the client has seen a later zxid than the server has, or the server refuses more connections (maxClientCnxns); its log says which",
	}
}

// Cause describes in one line why a server couldn't be used, and which flag or
// setting helps, if any. It returns the text of an error that it doesn't know
// unchanged.
func Cause(err error) string {
	text, _ := ClientTerms().Phrase(err)
	return text
}

// Phrase implements Cause. It reports whether it knows the error.
func (t Terms) Phrase(err error) (text string, known bool) {
	for _, c := range t.causes() {
		if c.is(err) {
			return c.say(err), true
		}
	}
	return err.Error(), false
}

// cause is one kind of failure.
type cause struct {
	is  func(error) bool
	say func(error) string
}

// fixed returns the same text for all failures of a kind.
func fixed(text string) func(error) string { return func(error) string { return text } }

// with adds a hint to the error's own text.
func with(hint string) func(error) string {
	return func(err error) string { return LastWords(err) + ": " + hint }
}

// ErrNotServing is the cause if a server answers but doesn't serve clients.
var ErrNotServing error = probed{"it runs but does not serve clients: it has no quorum, or is starting (its log says why)"}

// causes returns the known kinds, most specific first.
func (t Terms) causes() []cause {
	alert := func(words ...string) func(error) bool {
		return func(err error) bool {
			_, text, ok := strings.Cut(err.Error(), "remote error: tls: ")
			return ok && slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(text, w) })
		}
	}
	says := func(text string) func(error) bool { // an error of net/http that has no type
		return func(err error) bool { return strings.Contains(err.Error(), text) }
	}
	return []cause{
		{is[probed], func(err error) string { return as[probed](err).text }},
		{same(client.ErrTLSRequired), fixed("the port expects TLS: " + t.UseTLS)},
		{is[tls.RecordHeaderError], fixed("it does not speak TLS: " + t.NoTLS)},
		{says(`malformed HTTP response "\x15\x03`), fixed("the port expects TLS: " + t.UseTLS)},
		{says("gave HTTP response to HTTPS client"), fixed("it does not speak TLS: " + t.NoTLS)},
		{is[x509.UnknownAuthorityError], fixed("its certificate is signed by an unknown authority: pass the CA's certificate with " + t.CA)},
		{is[x509.HostnameError], with(t.Name)},
		{is[x509.CertificateInvalidError], with("see the server's certificate and " + t.CA)},
		{alert("certificate required"), fixed("it requires a client certificate: use " + t.Cert)},
		{alert("bad certificate", "unknown certificate", "certificate", "handshake failure"), with("the server refuses the client's certificate, or its absence: see " + t.Cert)},
		{is[*net.AddrError], with("want host:port, not a URL")},
		{same(client.ErrAuthFailed), with("see " + t.Auth)},
		{isUnknownHost, with("check the host name")},
		{same(syscall.ECONNREFUSED), fixed("connection refused: no server listens there")},
		{func(err error) bool { return isClosed(err) && errors.Is(err, client.ErrTLSHandshake) },
			fixed("it closed the connection during the TLS handshake: is this the port for TLS clients (secureClientPort)?")},
		{isClosed, fixed("it closed the connection without an answer: " + t.Closed)},
	}
}

func is[T error](err error) bool { var e T; return errors.As(err, &e) }
func as[T error](err error) (e T) {
	errors.As(err, &e)
	return e
}
func same(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func isUnknownHost(err error) bool {
	var e *net.DNSError
	return errors.As(err, &e) && e.IsNotFound && e.Err != "unknown port"
}

// isClosed reports whether the peer has closed the connection.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// LastWords returns an error's own text without the addresses around it.
func LastWords(err error) string {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.Err
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// probed is a failure with a cause that we found by probing the server.
type probed struct{ text string }

// Error returns the cause.
func (p probed) Error() string { return p.text }

// causeList describes, for each server, why it couldn't be used. It merges addresses
// of a server that fail in the same way.
func causeList(failures []client.ConnectFailure) []string {
	var list []string
	seen := map[string]bool{}
	for _, f := range failures {
		line := f.Server + ": " + Cause(f.Err)
		if !seen[line] {
			seen[line] = true
			list = append(list, line)
		}
	}
	return list
}

// ErrNoConnection is the error of a command that waited too long for a connection.
var ErrNoConnection = errors.New("no connection for too long")

// NoConnection is the error of a command that waited too long for a connection.
type NoConnection struct {
	waited string
	causes []string
}

// Error returns the message with the causes.
func (e *NoConnection) Error() string {
	if len(e.causes) == 0 {
		return fmt.Sprintf("gave up waiting after %s: no server has answered yet", e.waited)
	}
	return fmt.Sprintf("gave up waiting after %s: %s", e.waited, strings.Join(e.causes, "; "))
}

// Is reports whether target is ErrNoConnection.
func (e *NoConnection) Is(target error) bool { return target == ErrNoConnection }
