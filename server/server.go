package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/internal/auth/tlsport"
	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/internal/ops/audit"
	"github.com/zkgo/zkgo/internal/ops/httpport"
	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/tree"
	"github.com/zkgo/zkgo/watch"
)

// ErrClosed is the error of Dial on a closed server.
var ErrClosed = errors.New("server: closed")

// Server is a ZooKeeper server.
type Server struct {
	cfg       Config
	log       *slog.Logger
	node      *raftfsm.Node
	tree      *tree.Tree
	watches   *watch.Table
	confirmed func() time.Time // time of the newest proof that the ensemble knows this server
	fresh     func() time.Time // everything acknowledged by that time is applied here
	gated     bool             // whether replies depend on them

	fsm        fsm
	flushers   flushers
	rounds     rounds
	complaints *limits.Complaints
	long       *limits.LongAnswers
	barriers   barriers
	modes      modes
	stats      stats
	spaces     namespaces
	bufs       buffers
	works      sync.Pool // of *work
	pendings   sync.Pool // of *pending
	epoch      time.Time // when clock began
	relieve    chan struct{}
	members    chan struct{}           // signals keepDynamic that the membership changed
	lines      chan struct{}           // signals keepClientPort the same
	tlsPort    *tlsport.Port           // nil without TLS
	tokens     *limits.SessionThrottle // nil: no limit
	throttle   *throttle               // nil: no limit
	memory     *limits.Memory          // nil: no limit
	largeAt    int                     // the length above which a request is large
	listeners  []net.Listener
	admin      *httpport.Port
	metrics    *httpport.Port
	audit      *audit.Recorder // nil: no audit log

	outstanding atomic.Int64 // requests in flight
	largeBytes  atomic.Int64 // of all large requests
	queuedOut   atomic.Int64 // bytes in all outputs
	inTouch     atomic.Int64 // clock: a time that confirmed returned
	freshAt     atomic.Int64 // clock: a time that fresh returned

	done      chan struct{}
	closeOnce func() error
	wg        sync.WaitGroup // every goroutine except the Node's

	mu        sync.Mutex
	closing   bool
	conns     map[*conn]struct{}
	perHost   map[string]int
	lost      lostSessions
	sessions  map[int64]*conn // by session id
	locals    map[int64][proto.PasswordSize]byte
	lastLocal int64
	dialed    int
	traceMask uint64
	digests   digestLog
}

// Start starts a server. It returns when the listeners are open; Ready tells when the
// server answers clients. ctx bounds only the start.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if err := checkDataDir(&cfg); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkPorts(ctx, &cfg); err != nil {
		return nil, err
	}
	s := newServer(cfg)
	if cfg.TLS != nil {
		port, err := newTLSPort(cfg.TLS, s.log)
		if err != nil {
			return nil, err
		}
		s.tlsPort = port
	}
	nodeConfig := s.nodeConfig()
	if cfg.QuorumTLS != nil && cfg.distributed() {
		security, err := cfg.QuorumTLS.load(s.log)
		if err != nil {
			return nil, err
		}
		nodeConfig.TLS = security
	}
	if cfg.distributed() {
		nodeConfig.SASL = cfg.QuorumSASL.of()
	}
	if err := s.openAudit(); err != nil {
		return nil, err
	}
	starting, started := context.WithCancel(ctx)
	defer started()
	if cfg.Network == nil {
		nodeConfig.Network = patientNetwork{new(quorum.TCP), starting, cfg.QuorumBindTries, bindPause, s.log}
	}
	node, err := raftfsm.New(nodeConfig)
	if err != nil {
		return nil, errors.Join(err, s.closeAudit())
	}
	s.node, s.tree = node, node.Tree()
	s.confirmed, s.fresh, s.gated = node.Confirmed, node.Fresh, cfg.distributed()
	if err := node.Start(); err != nil {
		return nil, errors.Join(err, s.closeAudit())
	}
	s.flushers.start(s)
	s.spawn(s.tend)
	s.keepDynamic()
	s.spawn(s.passBarriers)
	if s.throttle != nil {
		s.spawn(s.passThrottle)
	}
	if s.memory != nil {
		s.spawn(func() { s.memory.Watch(s.done) })
	}
	if err := errors.Join(s.openListeners(ctx), s.openAdmin(ctx), s.openMetrics(ctx)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.keepClientPort()
	return s, nil
}

// newServer returns a Server without a Node; the caller sets it.
func newServer(cfg Config) *Server {
	s := &Server{
		cfg: cfg, log: cfg.Logger, watches: watch.NewTable(cfg.MaxWatchBytes), fsm: newFSM(), epoch: time.Now(),
		relieve: make(chan struct{}, 1), members: make(chan struct{}, 1), lines: make(chan struct{}, 1), done: make(chan struct{}),
		barriers: barriers{poke: make(chan struct{}, 1)},
		conns:    make(map[*conn]struct{}), perHost: make(map[string]int),
		sessions: make(map[int64]*conn), locals: make(map[int64][proto.PasswordSize]byte),
		traceMask: defaultTraceMask, long: limits.NewLongAnswers(),
	}
	s.fsm.allow = s.fsm.mayRead
	s.complaints = limits.NewComplaints(cfg.Logger)
	s.tokens, s.throttle, s.largeAt = limits.NewSessionThrottle((*limits.SessionRate)(cfg.ConnThrottle), 0), newThrottle(cfg.RequestThrottle), cfg.largeAbove()
	if cfg.MemoryCeiling > 0 {
		s.memory = limits.NewMemory(cfg.MemoryCeiling, cfg.Logger)
		s.memory.Shed = s.shedForMemory
	}
	s.modes.changed, s.modes.ready = make(chan struct{}), make(chan struct{})
	s.modes.since, s.modes.touch, s.modes.down = cfg.Now(), true, s.epoch
	s.inTouch.Store(never)
	s.freshAt.Store(never)
	s.rounds.prepare(s)
	s.closeOnce = sync.OnceValue(s.close)
	return s
}

// nodeConfig returns the configuration of the replicated state.
func (s *Server) nodeConfig() raftfsm.Config {
	c := &s.cfg
	var full func() bool
	if s.memory != nil {
		full = s.memory.Full.Load
	}
	return raftfsm.Config{
		ID: c.ID, Members: c.Members, Ensemble: c.Ensemble, ClientPort: max(portOf(c.ClientAddr), 0),
		Memory: c.Memory, FS: c.FS, LogSegment: c.LogSegment, LogDir: c.LogDir, SnapDir: c.DataDir, Store: c.Store, Bolt: c.Bolt,
		Network: c.Network, ListenAll: c.ListenAll, ListenHost: c.ListenHost,
		TickTime: c.TickTime, InitLimit: c.InitLimit, SyncLimit: c.SyncLimit,
		SnapCount: c.SnapCount, SnapBytes: c.SnapBytes, SnapRetain: c.SnapRetain, SnapTrailing: c.SnapTrailing,
		Policy: c.policy(), Full: full, ContainerInterval: c.ContainerInterval,
		ContainerMaxPerMin: c.ContainerMaxPerMin, ContainerMaxNeverUse: c.ContainerMaxNeverUsed,
		Now: c.Now, Wall: c.Wall, Logger: c.Logger, Handler: handler{s},
	}
}

// openListeners opens the client ports. ctx ends the wait for a host name.
func (s *Server) openListeners(ctx context.Context) error {
	c := &s.cfg
	open := func(p port, security *tlsport.Port) error {
		_, err := c.awaitName(ctx, p, func(addr string) (net.Listener, error) { return nil, s.listen(p.setting, addr, security) })
		return err
	}
	if c.ClientAddr != "" {
		if err := open(port{"clientPort", c.ClientAddr}, s.clientTLS()); err != nil {
			return err
		}
	}
	if c.SecureAddr != "" {
		return open(port{"secureClientPort", c.SecureAddr}, s.tlsPort)
	}
	return nil
}

// spawn runs f on a goroutine that Close waits for.
func (s *Server) spawn(f func()) {
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		f()
	}()
}

// clock returns the time since the server started. It doesn't jump.
func (s *Server) clock() int64 { return int64(time.Since(s.epoch)) }

// lastZxid returns the zxid of the newest transaction applied here.
func (s *Server) lastZxid() int64 {
	s.tree.RLock()
	defer s.tree.RUnlock()
	return s.tree.LastZxid()
}

// ClientAddr returns the address of the plaintext listener, or of the only listener; ""
// if there is none.
func (s *Server) ClientAddr() string {
	if addrs := s.ClientAddrs(); len(addrs) > 0 {
		return addrs[0]
	}
	return ""
}

// ClientAddrs returns the addresses of all listeners for clients.
func (s *Server) ClientAddrs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var addrs []string
	for _, l := range s.listeners {
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

// Ready returns a channel that is closed when the server first answers clients.
func (s *Server) Ready() <-chan struct{} { return s.modes.ready }

// Err returns a channel that gets one error if the server stops for good by itself,
// e.g. because its disk failed. The caller must still close the server.
func (s *Server) Err() <-chan error { return s.node.Err() }

// Node returns the server's replica.
func (s *Server) Node() *raftfsm.Node { return s.node }

// Dial connects a client to the server without a socket. The connection speaks the same
// protocol as one over TCP.
func (s *Server) Dial() (net.Conn, error) {
	s.mu.Lock()
	s.dialed++
	name := fmt.Sprintf("client-%d", s.dialed)
	closing := s.closing
	s.mu.Unlock()
	if closing {
		return nil, ErrClosed
	}
	client, server := newPipe(name, fmt.Sprintf("server-%d", s.cfg.ID))
	s.begin(server, nil)
	return client, nil
}

// Close stops the server. It still applies what has been proposed, disconnects the
// clients, and returns after every goroutine has ended.
func (s *Server) Close() error { return s.closeOnce() }

func (s *Server) close() error {
	var errs []error
	s.mu.Lock()
	s.closing = true
	listeners := s.listeners
	s.mu.Unlock()
	close(s.done)
	if s.audit != nil {
		s.audit.Stopping()
	}
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	errs = append(errs, s.admin.Close(), s.metrics.Close())
	errs = append(errs, s.node.Close())
	s.eachConn((*conn).kill)
	s.flushers.stop()
	s.rounds.stop()
	s.wg.Wait()
	errs = append(errs, s.closeAudit())
	return errors.Join(errs...)
}
