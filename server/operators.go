package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/internal/listen"
	"github.com/zkgo/zkgo/internal/observermaster"
	"github.com/zkgo/zkgo/internal/ops/admin"
	"github.com/zkgo/zkgo/internal/ops/fourletter"
	"github.com/zkgo/zkgo/internal/ops/httpport"
	"github.com/zkgo/zkgo/internal/ops/snapshots"
	"github.com/zkgo/zkgo/internal/ops/status"
	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// Admin configures the commands over HTTP. Any client that reaches the port, with a
// certificate if TLS requires one, may ask for the server's role and its numbers. The other
// commands require the super user, or an identity with all permissions in the ACL of the
// root.
type Admin struct {
	Addr        string        // host:port; port 0 picks a free one
	CommandURL  string        // default /commands
	IdleTimeout time.Duration // default 30 s
	TLS         *AdminTLS     // nil: plaintext
	Profiles    bool          // pprof at /debug/pprof/
	// NoSnapshot and NoRestore disable the commands that read and replace the whole
	// state.
	NoSnapshot, NoRestore bool
	// SnapshotInterval is the minimum time between two snapshots, RestoreInterval between
	// two restores. 0: no limit.
	SnapshotInterval, RestoreInterval time.Duration
	// Optional turns the error for a port that is in use into a warning: the server starts
	// without the commands. In an ensemble, the same applies to a host that the server can't
	// listen on.
	Optional bool
}

const defaultAdminIdle = 30 * time.Second

// openHTTP serves requests at the address of at. ctx ends the wait
// for a host name.
func (s *Server) openHTTP(ctx context.Context, at listen.Port, security *AdminTLS, h http.Handler, idle time.Duration) (*httpport.Port, error) {
	plain, err := s.cfg.bindRetry().AwaitName(ctx, at, listen.TCP)
	if err != nil {
		return nil, err
	}
	srv, err := s.serveHTTP(at.Setting, plain, security, h, idle)
	if err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	return srv, nil
}

// serveHTTP serves requests on the connections of plain. setting is the key that names
// the port.
func (s *Server) serveHTTP(setting string, plain net.Listener, security *AdminTLS, h http.Handler, idle time.Duration) (*httpport.Port, error) {
	return httpport.Serve(plain, h, httpport.Options{
		Setting: setting, Idle: idle, Log: s.log,
		Complain: func(msg string, args ...any) { s.complaints.Warn(s.clock(), msg, args...) },
		Secure:   func(l net.Listener) (net.Listener, error) { return security.wrap(l, s.cfg.Env.Formats, s.log) },
	})
}

// openAdmin opens the port for commands over HTTP, if it is configured.
func (s *Server) openAdmin(ctx context.Context) error {
	a := s.cfg.Admin
	if a == nil {
		return nil
	}
	url, idle := a.CommandURL, a.IdleTimeout
	or(&url, admin.DefaultURL)
	or(&idle, defaultAdminIdle)
	source := adminSourceOf(s)
	source.Sweep()
	opts := admin.Options{
		Profiles:   a.Profiles,
		NoSnapshot: a.NoSnapshot, NoRestore: a.NoRestore, Interval: a.SnapshotInterval, RestoreInterval: a.RestoreInterval,
	}
	opts.TooEarly = func(command string) {
		if command == "restore" {
			s.stats.RestoresTooEarly.Add(1)
		} else {
			s.stats.SnapshotsTooEarly.Add(1)
		}
	}
	opts.Started = httpport.Keep
	opts.Refused = func(r *http.Request, command, reason string) {
		s.complaints.Warn(s.clock(), "rejected a command over HTTP: "+reason, "client", r.RemoteAddr, "command", command)
	}
	h := admin.Handler(source, url, opts)
	at := listen.At("admin.serverPort", a.Addr)
	srv, err := s.openHTTP(ctx, at, a.TLS, h, idle)
	switch {
	case err == nil:
		s.admin = srv
		return nil
	case a.Optional && listen.InUse(err):
		s.log.Warn("no commands over HTTP: the port is in use; set admin.serverPort, or admin.enableServer=false", "address", a.Addr)
		return nil
	case a.Optional && s.cfg.distributed() && listen.HostProblem(err) != "":
		s.log.Warn("no commands over HTTP: the server can't listen on the host; set admin.serverAddress, or admin.enableServer=false",
			"address", a.Addr, "error", err)
		return nil
	}
	return listenError(at, err)
}

// AdminURL returns the URL that lists the commands over HTTP, or "".
func (s *Server) AdminURL() string {
	if s.admin == nil {
		return ""
	}
	scheme, url := "http", s.cfg.Admin.CommandURL
	if s.cfg.Admin.TLS != nil {
		scheme = "https"
	}
	or(&url, admin.DefaultURL)
	return scheme + "://" + s.AdminAddr() + url
}

// AdminAddr returns the address for commands over HTTP, or "".
func (s *Server) AdminAddr() string { return s.admin.Addr() }

// adminSource implements admin.Source.
type adminSource struct {
	statusSource
	*snapshots.Snapshots
}

func adminSourceOf(s *Server) adminSource {
	c := &s.cfg
	a := adminSource{sourceOf(s), &snapshots.Snapshots{
		Node: s.node, Dir: c.DataDir, Schemes: &s.schemes, SuperUser: c.superUser(), Stats: &s.stats, Log: s.log, Write: c.Env.Formats.WriteState,
		Complain: func(msg string, args ...any) { s.complaints.Warn(s.clock(), msg, args...) },
	}}
	if read := c.Env.Formats.ReadState; read != nil {
		a.Read = func(r io.Reader) (*tree.Tree, *session.Table, error) {
			return read(r, c.policy(), c.maxField(), s.memory.RoomToRestore)
		}
	}
	if c.Memory {
		a.Dir = ""
	}
	return a
}

// superUser returns the subject of the super user's certificate, or "".
func (c *Config) superUser() string {
	if c.TLS == nil {
		return ""
	}
	return c.TLS.SuperUser
}

// LastSnapshot implements admin.Source.
func (a adminSource) LastSnapshot() (zxid int64, at time.Time, ok bool) {
	return a.s.node.LastSnapshot()
}

// BeginLong implements admin.Source.
func (a adminSource) BeginLong(command string, r *http.Request, cut func()) (sending, end func()) {
	long := a.s.long.Begin(r.Context().Done(), func() {
		a.s.complaints.Warn(a.s.clock(), "closing a client that does not read the answer to its command", "client", r.RemoteAddr, "command", command)
		cut()
	})
	if long == nil {
		return nil, nil
	}
	return long.Sending, long.End
}

// Metrics configures the ports where Prometheus reads metrics, at /metrics.
type Metrics struct {
	Addr string // host:port in plaintext; port 0 picks a free one; empty: none
	// SecureAddr is host:port with TLS. If it is the same as Addr, the port accepts both.
	SecureAddr string
	TLS        *AdminTLS // required by SecureAddr; Only has no effect
	// User and Password are for basic authentication, Token is for bearer authentication. If
	// both are set, either is enough.
	User, Password, Token string
	Process               bool // add the metrics of the Go runtime and the process
	// Handler serves the metrics of a server; required: prom.Handler of server/prom.
	Handler func(m MetricsSource, process bool) http.Handler
}

// MetricsSource provides a server's metrics.
type MetricsSource = status.MetricsSource

// Metrics returns the server's metrics, e.g. for a registry of the program: see
// prom.Collector of server/prom.
func (s *Server) Metrics() MetricsSource { return sourceOf(s) }

// errNoMetrics refuses metrics that the program can't serve.
var errNoMetrics = errors.New("metrics for Prometheus (metricsProvider.className): this program has to set Config.Metrics.Handler, e.g. to prom.Handler of server/prom")

// ports returns the addresses to listen on.
func (m *Metrics) ports() []listen.Port {
	if m == nil {
		return nil
	}
	all := []listen.Port{listen.At("metricsProvider.httpPort", m.Addr), listen.At("metricsProvider.httpsPort", m.SecureAddr)}
	if m.Addr == m.SecureAddr { // one port, even if the number is 0
		all = all[1:]
	}
	return slices.DeleteFunc(all, func(p listen.Port) bool { return p.Addr == "" })
}

// hosts returns the addresses to listen on, with the setting that names their host.
func (m *Metrics) hosts() (all []listen.Port) {
	for _, p := range m.ports() {
		all = append(all, listen.At("metricsProvider.httpHost", p.Addr))
	}
	return all[:min(len(all), 1)]
}

// security returns the TLS of a port, or nil.
func (m *Metrics) security(p listen.Port) *AdminTLS {
	if p.Addr != m.SecureAddr {
		return nil
	}
	security := *m.TLS
	security.Only, security.metrics = m.Addr != m.SecureAddr, true
	return &security
}

// openMetrics opens the ports for Prometheus, if they are configured.
func (s *Server) openMetrics(ctx context.Context) error {
	m := s.cfg.Metrics
	if m == nil {
		return nil
	}
	h := httpport.Credentials{User: m.User, Password: m.Password, Token: m.Token}.Require(
		m.Handler(sourceOf(s), m.Process), func(r *http.Request) {
			s.complaints.Warn(s.clock(), "rejected a metrics request: missing or wrong credentials", "client", r.RemoteAddr)
		})
	for _, at := range m.ports() {
		srv, err := s.openHTTP(ctx, at, m.security(at), h, defaultAdminIdle)
		if err != nil {
			return listenError(at, err)
		}
		s.metrics = append(s.metrics, srv)
	}
	return nil
}

// MetricsAddr returns the address for Prometheus, or "". If there are two, it returns the
// plaintext one.
func (s *Server) MetricsAddr() string {
	if len(s.metrics) == 0 {
		return ""
	}
	return s.metrics[0].Addr()
}

// MetricsURLs returns the URLs of the metrics.
func (s *Server) MetricsURLs() (urls []string) {
	for i, p := range s.cfg.Metrics.ports() {
		scheme := "http"
		if security := s.cfg.Metrics.security(p); security != nil && security.Only {
			scheme = "https"
		}
		urls = append(urls, scheme+"://"+s.metrics[i].Addr()+status.MetricsPath)
	}
	return urls
}

// isWord reports whether the first four bytes of a connection are a command. As a
// length they would be more than a gigabyte.
func isWord(first string) bool { return fourletter.Known(first) }

// answerWord answers a four-letter word, which ends the connection.
func (c *conn) answerWord(word string) {
	s := c.s
	c.replies.countReceived(proto.LengthSize)
	defer s.stats.Sent.Add(1)
	if !fourletter.Allowed(word, s.cfg.FourLetterWords, s.cfg.ReadOnlyMode) {
		_, _ = c.nc.Write(fourletter.Refusal(word))
		return
	}
	var arg []byte
	if word == "stmk" {
		for len(c.reader.unread()) < proto.LengthSize+fourletter.ArgSize {
			if c.reader.fill() != nil {
				return
			}
		}
		arg = c.reader.unread()[proto.LengthSize:][:fourletter.ArgSize]
	}
	w := wordWriter{c: c}
	if fourletter.Long(word) {
		w.long = s.long.Begin(nil, func() {
			c.complain("closing a client that does not read the answer to its command", "command", word)
			s.stats.Dropped.Add(1)
			c.kill()
		})
		defer w.long.End()
		if c.replies.isClosed() {
			return
		}
	}
	// The client may have closed the connection.
	_ = fourletter.Answer(w, word, arg, sourceOf(s), c.nc.RemoteAddr().String())
}

// wordWriter writes the answer to a four-letter word. Bytes that are being written count as
// output of the connection.
type wordWriter struct {
	c    *conn
	long *limits.LongAnswer // nil: the answer is short
}

func (w wordWriter) Write(b []byte) (int, error) {
	c := w.c
	if w.long != nil {
		w.long.Sending()
	}
	c.replies.mu.Lock()
	c.replies.pushing = len(b)
	c.replies.mu.Unlock()
	c.replies.countQueued(len(b))
	err := c.replies.writeAll(b)
	c.replies.mu.Lock()
	left := c.replies.pushing
	c.replies.pushing = 0
	c.replies.mu.Unlock()
	c.s.queuedOut.Add(-int64(left))
	return len(b) - left, err
}

// observers serves observers outside of the ensemble: standbys, and ensembles that will
// replace this one. Without a port for observers, we keep no transactions.
type observers struct {
	history *observermaster.History // nil: there is no port
	master  *observermaster.Master
}

// defaultObserverBytes is the default of Quorum.ObserverMasterBytes.
const defaultObserverBytes = 64 << 20

// errNoBody reports a port for observers in a program without the format of the state.
var errNoBody = errors.New("observerMasterPort: this program has no format for the state (Env.Formats)")

// prepare makes the Node of the configuration keep transactions, if there is a port.
func (o *observers) prepare(c *Config, node *raftfsm.Config) error {
	switch {
	case c.Quorum.ObserverMasterAddr == "":
		return nil
	case c.Env.Formats.WriteBody == nil:
		return errNoBody
	}
	size := c.Quorum.ObserverMasterBytes
	or(&size, defaultObserverBytes)
	o.history = observermaster.NewHistory(size)
	node.Stream = o.history
	return nil
}

// open opens the port, if it is configured. security is for the connections between servers.
func (o *observers) open(ctx context.Context, s *Server, security *raftfsm.TLS) error {
	c := &s.cfg
	if o.history == nil {
		return nil
	}
	at := listen.At(observersSetting, c.Quorum.ObserverMasterAddr)
	l, err := c.bindRetry().AwaitName(ctx, at, listen.TCP)
	if err != nil {
		return listenError(at, err)
	}
	config := observermaster.Config{
		Tree: s.tree, Sessions: s.node.Sessions(), History: o.history,
		WriteBody: c.Env.Formats.WriteBody, Source: s.modes.mirror.source, Sync: func(done func(error)) error { return syncFor(s, done) },
		Tick: c.TickTime, InitLimit: c.Quorum.InitLimit, SyncLimit: c.Quorum.SyncLimit, Logger: s.log,
	}
	demands := false // a certificate
	if t := security; t != nil {
		demands = !t.AcceptPlain && t.Config().ClientAuth >= tls.RequireAndVerifyClientCert
		config.TLS = (&quorum.TLS{Config: t.Config, AcceptPlain: t.AcceptPlain, VerifyCaller: t.VerifyCaller, ReverseDNS: t.ReverseDNS}).Accept
	}
	if q := c.Quorum.SASL; q != nil {
		config.Users, config.RequireLogin = q.Users, q.ServerRequire
	}
	if !config.RequireLogin && !demands {
		s.log.Warn("every program that can reach observerMasterPort can read all znodes and session passwords: protect it (docs/operate/security.md)",
			"address", l.Addr().String())
	}
	o.master = observermaster.New(config, l)
	s.spawn(o.master.Serve)
	s.log.Info("serving observers", "address", l.Addr().String())
	return nil
}

// observersSetting is the key that names the port.
const observersSetting = "observerMasterPort"

// syncFor proposes a sync, and calls done once it is applied here.
func syncFor(s *Server, done func(error)) error {
	return s.node.Propose(&raftfsm.Command{Kind: raftfsm.KindSync, Waiter: s.Waiter(func(a *raftfsm.Applied) {
		if a.Code != proto.Ok {
			done(fmt.Errorf("sync failed: %v", a.Code))
			return
		}
		done(nil)
	})})
}

// list returns the observers that keep up.
func (o *observers) list() (all []status.Observer) {
	if o.master == nil {
		return nil
	}
	for _, l := range o.master.Lags() {
		all = append(all, status.Observer{Name: l.Observer, LagTransactions: l.Transactions, LagMillis: l.Behind.Milliseconds()})
	}
	return all
}

// close closes the port and the connections.
func (o *observers) close() error {
	if o.master == nil {
		return nil
	}
	return o.master.Close()
}

// quorumTLS returns the TLS of the connections between servers, which observers use too; nil if
// it isn't configured or not used.
func (c *Config) quorumTLS() (*raftfsm.TLS, error) {
	q := &c.Quorum
	if q.TLS == nil || !c.distributed() && q.ObserverMasterAddr == "" {
		return nil, nil //nolint:nilnil // no TLS is no error
	}
	return q.TLS.load(c.Env.Formats, c.Logger)
}
