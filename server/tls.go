package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/zkgo/zkgo/internal/auth/certs"
	"github.com/zkgo/zkgo/internal/auth/tlsport"
	"github.com/zkgo/zkgo/internal/ops/httpport"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// KeyStores are the key store and the trust store of a port, and its requirements for the
// peer. They mean the same as ZooKeeper's ssl.* settings. Config.Env.Formats reads them.
type KeyStores struct {
	Key, Trust KeyStore

	ClientAuth       string   // none, want or need; empty: need
	Protocols        []string // TLSv1.2, TLSv1.3; older ones are dropped; empty: both
	CipherSuites     []string // Go or Java names, unusable ones are dropped; empty: Go's choice
	VerifyClientHost bool     // a client's certificate must contain the client's address
	ReverseDNS       bool     // or a host name of that address
	Reload           bool     // reload the files when they change
	CRL, OCSP        bool     // check for revocation at the addresses in the certificate
}

// KeyStore is a file with a key, or with the certificates to trust.
type KeyStore struct {
	Location     string
	Password     string
	PasswordPath string // a file with the password; overrides Password
	Type         string // JKS, PEM or PKCS12; empty: by file extension
}

// errKeyStores refuses key stores that the program can't read.
var errKeyStores = errors.New("this program does not support key stores: set Config.Env.Formats, e.g. to formats.All() of server/formats, or a tls.Config instead of the files")

// TLS configures TLS for clients.
type TLS struct {
	KeyStores
	// Config, if set, replaces KeyStores except for VerifyClientHost and ReverseDNS.
	Config *tls.Config
	// SuperUser is the subject of a certificate that gives its owner every permission. The
	// format is RFC 2253, as in ZooKeeper's ACLs.
	SuperUser string
}

// newTLSPort reads the key stores.
func newTLSPort(t *TLS, f Formats, log *slog.Logger) (*tlsport.Port, error) {
	config := t.Config
	if config == nil {
		var err error
		config, err = f.serverTLS(t.KeyStores, func(err error) { log.Error("TLS keeps its certificates", "error", err) })
		if err != nil {
			return nil, fmt.Errorf("TLS for clients: %w", err)
		}
	}
	return tlsport.New(config, certs.HostCheck{Verify: t.VerifyClientHost, ReverseDNS: t.ReverseDNS}, t.SuperUser), nil
}

// QuorumTLS configures TLS between the servers of an ensemble.
type QuorumTLS struct {
	// KeyStores name the key and the trusted certificates. With VerifyClientHost a server
	// accepts only a peer with a certificate that names a host that the configuration has
	// for the peer, or the host from which the peer connects.
	KeyStores
	// Config, if set, replaces KeyStores except for VerifyClientHost and ReverseDNS. Its
	// ClientCAs are trusted in both directions.
	Config *tls.Config
	// VerifyHost requires that the certificate of a dialed server names the host that
	// the configuration has for it.
	VerifyHost bool
	// DialPlain dials the other servers in plaintext, and AcceptPlain also accepts
	// plaintext: for changing a running ensemble to TLS, or back.
	DialPlain, AcceptPlain bool
	// DetectionTimeout is how long a new connection may stay silent; default 5 s.
	DetectionTimeout time.Duration
}

// load reads the key stores.
func (q *QuorumTLS) load(f Formats, log *slog.Logger) (*raftfsm.TLS, error) {
	t := &raftfsm.TLS{
		DialPlain: q.DialPlain, AcceptPlain: q.AcceptPlain,
		VerifyHost: q.VerifyHost, VerifyCaller: q.VerifyClientHost, ReverseDNS: q.ReverseDNS,
		Detect: q.DetectionTimeout,
	}
	if q.Config != nil {
		t.Config = func() *tls.Config { return q.Config }
		return t, nil
	}
	var err error
	t.Config, err = f.peerTLS(q.KeyStores, func(err error) { log.Error("TLS between the servers keeps its certificates", "error", err) })
	if err != nil {
		return nil, fmt.Errorf("TLS between servers, ssl.quorum.*: %w", err)
	}
	return t, nil
}

// QuorumSASL makes the servers of an ensemble prove to one another, with SASL DIGEST-MD5,
// that they know a password. It doesn't protect the traffic after that, so you should
// combine it with QuorumTLS.
type QuorumSASL struct {
	// Users may connect to this server. User is the name it uses to connect to others.
	Users          map[string]string // passwords by user
	User, Password string
	// LearnerRequire makes this server authenticate to the servers it dials
	// (quorum.auth.learnerRequireSasl). ServerRequire rejects servers that don't
	// authenticate (quorum.auth.serverRequireSasl), and requires LearnerRequire.
	// Without ServerRequire the server accepts both kinds, so that a running ensemble
	// can change over.
	LearnerRequire, ServerRequire bool
}

// check returns an error for missing or contradictory settings.
func (q *QuorumSASL) check() error {
	switch {
	case q == nil:
	case len(q.Users) == 0:
		return errors.New("QuorumSASL: Users is empty")
	case q.User == "" || q.Password == "":
		return errors.New("QuorumSASL: User and Password are not both set")
	case q.ServerRequire && !q.LearnerRequire:
		return errors.New("QuorumSASL: ServerRequire needs LearnerRequire: this server could not connect to the others")
	}
	return nil
}

// of returns the SASL settings of the connections between the servers.
func (q *QuorumSASL) of() *raftfsm.SASL {
	if q == nil {
		return nil
	}
	return &raftfsm.SASL{Users: q.Users, User: q.User, Password: q.Password, Login: q.LearnerRequire, Require: q.ServerRequire}
}

// AdminTLS configures TLS on a port for operators: commands over HTTP, or metrics.
type AdminTLS struct {
	KeyStores
	// Config, if set, replaces KeyStores.
	Config *tls.Config
	// Only refuses plaintext; otherwise the port accepts both.
	Only bool

	metrics bool // for errors: it belongs to the metrics
}

// port returns the name of the port, and the settings of its TLS.
func (t *AdminTLS) port() (name, settings string) {
	if t.metrics {
		return "the metrics", "metricsProvider.ssl.*"
	}
	return "the AdminServer", "ssl.quorum.*"
}

// load reads the key stores.
func (t *AdminTLS) load(f Formats, log *slog.Logger) (*tls.Config, error) {
	if t.Config != nil {
		return t.Config, nil
	}
	name, settings := t.port()
	c, err := f.serverTLS(t.KeyStores, func(err error) { log.Error("TLS of "+name+" keeps its certificates", "error", err) })
	if err != nil {
		return nil, fmt.Errorf("TLS of %s, %s: %w", name, settings, err)
	}
	return c, nil
}

// wrap returns l with the TLS that t configures; t may be nil.
func (t *AdminTLS) wrap(l net.Listener, f Formats, log *slog.Logger) (net.Listener, error) {
	if t == nil {
		return l, nil
	}
	config, err := t.load(f, log)
	switch {
	case err != nil:
		return nil, err
	case t.Only:
		return tls.NewListener(l, config), nil
	}
	return tlsport.Either(l, config, httpport.HeaderTimeout), nil
}

// Formats reads and writes files that not every server needs: key stores, e.g. Java's, and
// the state as a file of ZooKeeper. A program sets the functions that it wants to link;
// formats.All of server/formats returns them all. Formats is also an option of LoadConfig.
type Formats struct {
	// ServerTLS reads the key stores of a port. It passes later errors, of files that it
	// reads again, to warn.
	ServerTLS func(k KeyStores, warn func(error)) (*tls.Config, error)
	// PeerTLS does the same for the connections between servers. It returns a function that
	// returns the configuration of the next connection, in either role; the trusted
	// certificates are in ClientCAs.
	PeerTLS func(k KeyStores, warn func(error)) (func() *tls.Config, error)
	// WriteState and ReadState are for the snapshot and restore of the commands over HTTP.
	WriteState func(w io.Writer, snap *tree.Snapshot, sessions *session.Table) error
	// WriteBody writes the state in the format in which a leader of ZooKeeper sends it to an
	// observer.
	WriteBody func(w io.Writer, snap *tree.Snapshot, sessions *session.Table) error
	// ReadState refuses a field of more than maxField bytes. It calls room repeatedly and
	// stops if room returns an error.
	ReadState func(r io.Reader, policy tree.Policy, maxField int, room func() error) (*tree.Tree, *session.Table, error)
}

// LoadOption implements the interface LoadOption.
func (Formats) LoadOption() {}

func (f Formats) serverTLS(k KeyStores, warn func(error)) (*tls.Config, error) {
	if f.ServerTLS == nil {
		return nil, errKeyStores
	}
	return f.ServerTLS(k, warn)
}

func (f Formats) peerTLS(k KeyStores, warn func(error)) (func() *tls.Config, error) {
	if f.PeerTLS == nil {
		return nil, errKeyStores
	}
	return f.PeerTLS(k, warn)
}
