package client

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"
)

// Defaults.
const (
	// DefaultSessionTimeout is what is asked for without WithSessionTimeout. The
	// server decides.
	DefaultSessionTimeout = 30 * time.Second
	// DefaultMaxRequest is the longest request, in bytes, that a server takes
	// whose jute.maxbuffer was not changed.
	DefaultMaxRequest = 0xfffff
	// DefaultMaxReply is the longest reply, in bytes, that is taken from a server.
	DefaultMaxReply = 64 << 20
)

// config is what the options say.
type config struct {
	timeout      time.Duration
	lazy         bool
	noNewSession bool
	readOnly     bool
	dialer       func(ctx context.Context, network, address string) (net.Conn, error)
	tls          *tls.Config
	auths        []auth
	sasl         SASLMechanism
	session      Session
	maxRequest   int
	maxReply     int
	retry        RetryPolicy
	aclProvider  func(path string) []ACL
	compression  Compression
	lease        LeasePolicy
	follow       bool
	shuffle      bool
	resolver     func(ctx context.Context, host string) ([]string, error)
	logger       *slog.Logger
	events       func(Event)

	connectFailed func([]ConnectFailure)
}

// Option changes how a Client connects.
type Option func(*config)

// WithSessionTimeout asks for a session timeout. The server brings it between 2
// and 20 of its ticks, unless configured otherwise; see [Session].
func WithSessionTimeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// WithLazy makes Connect return at once. Operations wait for the connection.
func WithLazy() Option { return func(c *config) { c.lazy = true } }

// WithoutNewSession makes the end of the session the end of the Client: every
// operation ends with [ErrSessionExpired] from then on.
func WithoutNewSession() Option { return func(c *config) { c.noNewSession = true } }

// WithReadOnly accepts a server that has lost its quorum and answers reads only
// as well. The state is StateReadOnly then, writes are refused
// with [ErrNotReadOnly], and a server with a quorum is looked for meanwhile.
func WithReadOnly() Option { return func(c *config) { c.readOnly = true } }

// WithDialer replaces the network. Addresses are those of the connect string,
// unresolved. It is how a program speaks to a server in its own process:
//
//	client.WithDialer(func(context.Context, string, string) (net.Conn, error) { return srv.Dial() })
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(c *config) { c.dialer = dial }
}

// WithTLS encrypts the connection. Without ServerName the host's name in the
// connect string is what the certificate has to name. A server knows the owner
// of a certificate among cfg.Certificates as an identity of scheme x509.
func WithTLS(cfg *tls.Config) Option { return func(c *config) { c.tls = cfg } }

// WithAuth adds credentials, which are sent on every connection before anything
// else: scheme "digest" with "user:password", or whatever the server knows. If
// they are refused the Client ends with StateAuthFailed.
func WithAuth(scheme string, credentials []byte) Option {
	return func(c *config) { c.auths = append(c.auths, auth{scheme, credentials}) }
}

// WithSASL authenticates every connection, for instance by [DigestMD5].
func WithSASL(m SASLMechanism) Option { return func(c *config) { c.sasl = m } }

// WithSession resumes a session instead of beginning one. If it has ended the
// first state is StateLost, and Connect fails with [ErrSessionExpired].
func WithSession(s Session) Option { return func(c *config) { c.session = s } }

// WithMaxRequest sets the longest request in bytes: the jute.maxbuffer of the
// servers. A longer one is refused with [ErrBadArguments] here; a server would
// close the connection.
func WithMaxRequest(bytes int) Option { return func(c *config) { c.maxRequest = bytes } }

// WithMaxReply sets the longest reply in bytes. A longer one closes the
// connection.
func WithMaxReply(bytes int) Option { return func(c *config) { c.maxReply = bytes } }

// WithRetry sets what is done about operations that lost their connection. Only
// what cannot be done twice is repeated: see [RetryPolicy].
func WithRetry(p RetryPolicy) Option { return func(c *config) { c.retry = p } }

// WithACLProvider sets which ACL znodes get that are created without [WithACL],
// by their path as the caller sees it. Without it they are open to everybody.
func WithACLProvider(f func(path string) []ACL) Option {
	return func(c *config) { c.aclProvider = f }
}

// WithCompression sets how [Compressed] data are stored; without it as Curator
// does, with [Gzip].
func WithCompression(z Compression) Option { return func(c *config) { c.compression = z } }

// WithLeasePolicy sets when a [Lease] ends.
func WithLeasePolicy(p LeasePolicy) Option { return func(c *config) { c.lease = p } }

// WithConfigTracking keeps the list of servers as /zookeeper/config says: the
// servers of the connect string are where it begins.
func WithConfigTracking() Option { return func(c *config) { c.follow = true } }

// WithoutShuffle tries the servers in the order of the connect string.
func WithoutShuffle() Option { return func(c *config) { c.shuffle = false } }

// WithResolver replaces the look-up of host names, which is done for every
// connection. It is not asked about IP addresses, nor if WithDialer was given.
func WithResolver(lookup func(ctx context.Context, host string) ([]string, error)) Option {
	return func(c *config) { c.resolver = lookup }
}

// WithLogger says where connects, disconnects and failures of work in the
// background are told, at level Info and Warn. Without it nowhere.
func WithLogger(l *slog.Logger) Option { return func(c *config) { c.logger = l } }

func newConfig(opts []Option) config {
	c := config{
		timeout:     DefaultSessionTimeout,
		maxRequest:  DefaultMaxRequest,
		maxReply:    DefaultMaxReply,
		retry:       DefaultRetry(),
		compression: Gzip(),
		shuffle:     true,
		logger:      slog.New(slog.DiscardHandler),
	}
	for _, o := range opts {
		o(&c)
	}
	return c
}

// WithEvents calls a function for every event that a server sends, once and in the
// server's order, however many watches of this Client the event is for. It is
// called before the event is in their channels, must return at once and must not
// call the Client. Paths are as the server knows them: with chroot and namespace.
func WithEvents(f func(Event)) Option { return func(c *config) { c.events = f } }
