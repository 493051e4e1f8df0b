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
	// DefaultSessionTimeout is the timeout that the Client requests without
	// WithSessionTimeout. The server may grant another one.
	DefaultSessionTimeout = 30 * time.Second
	// DefaultMaxRequest is the longest request, in bytes, that a server with the
	// default jute.maxbuffer accepts.
	DefaultMaxRequest = 0xfffff
	// DefaultMaxReply is the longest reply, in bytes, that the Client accepts from a
	// server.
	DefaultMaxReply = 64 << 20
)

// config is the set of settings that the options change.
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

// WithSessionTimeout requests a session timeout. Unless configured otherwise, the
// server limits it to between 2 and 20 of its ticks; see [Session].
func WithSessionTimeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// WithLazy makes Connect return immediately. Operations wait for the connection.
func WithLazy() Option { return func(c *config) { c.lazy = true } }

// WithoutNewSession makes the Client stop when its session ends: from then on every
// operation returns [ErrSessionExpired].
func WithoutNewSession() Option { return func(c *config) { c.noNewSession = true } }

// WithReadOnly also accepts a server that has lost its quorum and answers only reads.
// The state is then StateReadOnly, writes fail with [ErrNotReadOnly], and the Client
// keeps looking for a server with a quorum.
func WithReadOnly() Option { return func(c *config) { c.readOnly = true } }

// WithDialer sets the function that opens connections. It gets the addresses of the connect
// string, unresolved unless [WithResolver] is given. For example, a program can connect to a
// server in its own process:
//
//	client.WithDialer(func(context.Context, string, string) (net.Conn, error) { return srv.Dial() })
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(c *config) { c.dialer = dial }
}

// WithTLS encrypts the connection. If cfg.ServerName is empty, the certificate must
// match the host name in the connect string. A server can identify the client by a
// certificate in cfg.Certificates, as an identity of scheme x509.
func WithTLS(cfg *tls.Config) Option { return func(c *config) { c.tls = cfg } }

// WithAuth adds credentials, which the Client sends on every connection before
// anything else, e.g. scheme "digest" with "user:password". If a server refuses them,
// the Client ends with StateAuthFailed.
func WithAuth(scheme string, credentials []byte) Option {
	return func(c *config) { c.auths = append(c.auths, auth{scheme, credentials}) }
}

// WithSASL authenticates every connection, e.g. with [DigestMD5].
func WithSASL(m SASLMechanism) Option { return func(c *config) { c.sasl = m } }

// WithSession resumes a session instead of beginning one. If the session has ended,
// the first state is StateLost, and Connect fails with [ErrSessionExpired].
func WithSession(s Session) Option { return func(c *config) { c.session = s } }

// WithMaxRequest sets the maximum request size in bytes. It should match the servers'
// jute.maxbuffer. The Client refuses a longer request with [ErrBadArguments]; a server
// would close the connection.
func WithMaxRequest(bytes int) Option { return func(c *config) { c.maxRequest = bytes } }

// WithMaxReply sets the maximum reply size in bytes. The Client closes the connection if a
// server sends a longer reply.
func WithMaxReply(bytes int) Option { return func(c *config) { c.maxReply = bytes } }

// WithRetry sets the policy for operations that lost their connection. The Client only
// repeats operations that can safely run twice; see [RetryPolicy].
func WithRetry(p RetryPolicy) Option { return func(c *config) { c.retry = p } }

// WithACLProvider sets the function that returns the ACL of a znode created without
// [WithACL]. The path is the one the caller passed. By default, any client may access these
// znodes.
func WithACLProvider(f func(path string) []ACL) Option {
	return func(c *config) { c.aclProvider = f }
}

// WithCompression sets how [Compressed] data is stored. The default is [Gzip], as in
// Curator.
func WithCompression(z Compression) Option { return func(c *config) { c.compression = z } }

// WithLeasePolicy sets when a [Lease] ends.
func WithLeasePolicy(p LeasePolicy) Option { return func(c *config) { c.lease = p } }

// WithConfigTracking updates the list of servers from /zookeeper/config. The Client
// starts with the servers of the connect string.
func WithConfigTracking() Option { return func(c *config) { c.follow = true } }

// WithoutShuffle tries the servers in the order of the connect string.
func WithoutShuffle() Option { return func(c *config) { c.shuffle = false } }

// WithResolver sets the function that resolves host names. The Client resolves them
// for every round of connection attempts. It doesn't call the function for IP
// addresses.
func WithResolver(lookup func(ctx context.Context, host string) ([]string, error)) Option {
	return func(c *config) { c.resolver = lookup }
}

// WithLogger sets the logger for connects, disconnects and failures of background
// work, at levels Info and Warn. By default the Client logs nothing.
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

// WithEvents sets a function that the Client calls for every event that a server
// sends, once and in the server's order, however many watches of this Client the
// event is for. The call comes before the event is in the watches' channels. The
// function must return immediately and must not call the Client. Paths are the
// server's: with chroot and namespace.
func WithEvents(f func(Event)) Option { return func(c *config) { c.events = f } }
