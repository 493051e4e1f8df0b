package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/internal/auth/schemes"
	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/internal/listen"
	"github.com/zkgo/zkgo/internal/ops/audit"
	"github.com/zkgo/zkgo/internal/ops/httpport"
	"github.com/zkgo/zkgo/internal/ops/stats"
	"github.com/zkgo/zkgo/internal/pipe"
	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/tree"
	"github.com/zkgo/zkgo/watch"
)

// Server is a ZooKeeper server.
type Server struct {
	cfg     Config
	log     *slog.Logger
	node    *raftfsm.Node
	tree    *tree.Tree
	watches *watch.Table

	// State that serves the clients.
	clients  clientTable
	ports    clientPorts
	polling  polling
	fsm      fsm
	flushers flushers
	barriers barriers
	contact  contact
	modes    modes
	pools    pools

	limiters
	operators
	schemes    schemes.Builtin
	complaints *limits.Complaints
	stats      stats.Server
	spaces     stats.Namespaces

	epoch     time.Time     // when clock began
	members   chan struct{} // signals keepDynamic that the membership changed
	done      chan struct{}
	closeOnce func() error
	wg        sync.WaitGroup // every goroutine except the Node's
}

// limiters bound and count the resources that all clients use together.
type limiters struct {
	tokens      *limits.SessionThrottle // nil: no limit
	throttle    *throttle               // nil: no limit
	memory      *limits.Memory          // nil: no limit
	large       *limits.Large
	long        *limits.LongAnswers
	outstanding atomic.Int64  // requests in flight
	queuedOut   atomic.Int64  // bytes in all outputs
	relieve     chan struct{} // signals tend that a sum over all connections is too large
}

// operators is the state that serves operators.
type operators struct {
	admin     *httpport.Port
	observers observers
	metrics   []*httpport.Port
	audit     *audit.Recorder // nil: no audit log
	traceMask atomic.Uint64
	digests   stats.DigestLog
}

// Start starts a server. It returns when the listeners are open; Ready tells when the
// server answers clients. ctx bounds only the start.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if cfg.Metrics != nil && cfg.Metrics.Handler == nil {
		return nil, errNoMetrics
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
		port, err := newTLSPort(cfg.TLS, cfg.Env.Formats, s.log)
		if err != nil {
			return nil, err
		}
		s.ports.tls = port
	}
	nodeConfig := s.nodeConfig()
	security, err := cfg.quorumTLS()
	if err != nil {
		return nil, err
	}
	if err := s.observers.prepare(&cfg, &nodeConfig); err != nil {
		return nil, err
	}
	if cfg.distributed() {
		nodeConfig.Peers.TLS, nodeConfig.Peers.SASL = security, cfg.Quorum.SASL.of()
	}
	if err := s.openAudit(); err != nil {
		return nil, err
	}
	starting, started := context.WithCancel(ctx)
	defer started()
	if cfg.Env.Network == nil {
		nodeConfig.Peers.Network = listen.PatientNetwork{Network: new(quorum.TCP), Starting: starting, Retry: cfg.bindRetry()}
	}
	node, err := raftfsm.New(nodeConfig)
	if err != nil {
		return nil, errors.Join(err, s.closeAudit())
	}
	s.node, s.tree = node, node.Tree()
	s.contact.confirmed, s.contact.fresh, s.contact.gated = node.Confirmed, node.Fresh, cfg.distributed()
	if err := node.Start(); err != nil {
		return nil, errors.Join(err, s.closeAudit())
	}
	s.spawn(s.modes.mirror.watch)
	s.flushers.start(s)
	s.spawn(s.tend)
	keepDynamic(s)
	s.spawn(func() { s.barriers.run(s) })
	if s.throttle != nil {
		s.spawn(func() { s.throttle.run(s.done) })
	}
	if s.memory != nil {
		s.spawn(func() { s.memory.Watch(s.done, s.node.UntilNext) })
	}
	if err := errors.Join(s.observers.open(ctx, s, security), s.ports.openAll(ctx), s.openAdmin(ctx), s.openMetrics(ctx)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.ports.follow()
	return s, nil
}

// newServer returns a Server without a Node; the caller sets it.
func newServer(cfg Config) *Server {
	s := &Server{
		cfg: cfg, log: cfg.Logger, watches: watch.NewTable(cfg.Limits.MaxWatchBytes), epoch: time.Now(),
		members: make(chan struct{}, 1), done: make(chan struct{}),
		barriers: barriers{poke: make(chan struct{}, 1)},
	}
	s.fsm.prepare(s)
	s.clients.prepare(s)
	s.contact.prepare(s)
	s.ports.s, s.ports.moved = s, make(chan struct{}, 1)
	s.complaints = limits.NewComplaints(cfg.Logger)
	s.traceMask.Store(defaultTraceMask)
	s.long, s.relieve = limits.NewLongAnswers(), make(chan struct{}, 1)
	s.tokens, s.throttle = limits.NewSessionThrottle((*limits.SessionRate)(cfg.Limits.ConnThrottle), 0), newThrottle(cfg.Limits.RequestThrottle)
	s.large = limits.NewLarge(cfg.Limits.LargeRequestAbove, int64(cfg.Limits.LargeRequestMax))
	if cfg.Limits.MemoryCeiling > 0 {
		s.memory = limits.NewMemory(cfg.Limits.MemoryCeiling, cfg.Logger)
		s.memory.Shed = s.shedForMemory
	}
	s.modes.s, s.modes.changed, s.modes.ready = s, make(chan struct{}), make(chan struct{})
	s.modes.since, s.modes.touch, s.modes.down = cfg.Env.Now(), true, s.epoch
	s.polling.s, s.modes.mirror.s = s, s
	s.schemes = builtinSchemes(s)
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
		ID: c.Quorum.ID, Members: c.Quorum.Members, Ensemble: c.Quorum.Ensemble, NeedsAll: c.Quorum.NeedsAll, ClientPort: max(listen.PortOf(c.ClientAddr), 0),
		Memory: c.Memory, DataDir: c.DataDir, FS: c.Env.FS, Log: c.Log,
		Peers:      raftfsm.Peers{Network: c.Env.Network, ListenAll: c.Quorum.ListenAll, ListenHost: c.Quorum.ListenHost},
		Containers: raftfsm.Containers{Interval: c.Znodes.ContainerInterval, MaxPerMin: c.Znodes.ContainerMaxPerMin, MaxNeverUsed: c.Znodes.ContainerMaxNeverUsed},
		TickTime:   c.TickTime, SyncLimit: c.Quorum.SyncLimit, Policy: c.policy(), Full: full,
		Now: c.Env.Now, Wall: c.Env.Wall, Logger: c.Logger, Handler: handler{s},
	}
}

// membersChanged wakes keepDynamic and clientPorts.follow. It doesn't block, so the
// goroutine that applies the log may call it.
func (s *Server) membersChanged() {
	for _, ch := range []chan struct{}{s.members, s.ports.moved} {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// keepDynamic starts a goroutine that writes every change of the membership into the
// configuration file (zoocfg.WriteMembership). If the file can't be written, the server logs a
// warning and continues: the log has the membership.
func keepDynamic(s *Server) {
	z := s.cfg.zooCfg
	if z == nil || z.Path == "" || !s.cfg.Quorum.Reconfig || !s.cfg.distributed() {
		return
	}
	path, err := filepath.Abs(z.Path)
	if err != nil {
		s.log.Warn("cannot write the membership to the configuration file", "file", z.Path, "err", err)
		return
	}
	s.spawn(func() {
		written := z.DynamicConfigFile
		for {
			select {
			case <-s.done:
				return
			case <-s.members:
			}
			text := s.node.Membership()
			if text == nil {
				continue
			}
			file, err := zoocfg.WriteMembership(path, s.node.FileText(text), written, s.cfg.Quorum.ID)
			if err == nil && file != "" {
				err = s.node.FileWritten(text)
			}
			switch {
			case err != nil:
				s.log.Warn("could not write the membership to the configuration file: the list there is out of date", "file", path, "err", err)
			case file != written:
				written = file
				s.log.Info("wrote the membership to the configuration file", "file", file)
			}
		}
	})
}

// spawn runs f on a goroutine that Close waits for.
func (s *Server) spawn(f func()) {
	s.wg.Go(f)
}

// clock returns the time since the server started. It doesn't jump.
func (s *Server) clock() int64 { return int64(time.Since(s.epoch)) }

// lastZxid returns the zxid of the newest transaction applied here.
func (s *Server) lastZxid() int64 {
	s.tree.RLock()
	defer s.tree.RUnlock()
	return s.tree.LastZxid()
}

// ClientAddr returns the address of the plaintext listener, or of the only listener, or "".
func (s *Server) ClientAddr() string {
	if addrs := s.ClientAddrs(); len(addrs) > 0 {
		return addrs[0]
	}
	return ""
}

// ClientAddrs returns the addresses of all listeners for clients.
func (s *Server) ClientAddrs() []string { return s.ports.addrs() }

// Ready returns a channel that is closed when the server first answers clients.
func (s *Server) Ready() <-chan struct{} { return s.modes.ready }

// Err returns a channel that gets one error if the server stops permanently by itself,
// e.g. because its disk failed. The caller must still close the server.
func (s *Server) Err() <-chan error { return s.node.Err() }

// Node returns the server's replica.
func (s *Server) Node() *raftfsm.Node { return s.node }

// Requests returns how many requests the server has read since it started or since the last
// srst. It acquires no lock.
func (s *Server) Requests() int64 { return s.stats.Received.Load() }

// Dial connects a client to the server without a socket. The connection speaks the same
// protocol as one over TCP.
func (s *Server) Dial() (net.Conn, error) {
	n := s.clients.dial()
	if n == 0 {
		return nil, ErrClosed
	}
	client, server := pipe.New(fmt.Sprintf("client-%d", n), fmt.Sprintf("server-%d", s.cfg.Quorum.ID))
	s.begin(server, nil)
	return client, nil
}

// Close stops the server. It still applies the proposed commands, disconnects the clients,
// and returns after every goroutine has ended.
func (s *Server) Close() error { return s.closeOnce() }

func (s *Server) close() error {
	var errs []error
	s.clients.close()
	close(s.done)
	if s.audit != nil {
		s.audit.Stopping()
	}
	errs = append(errs, s.ports.close(), s.admin.Close(), s.observers.close())
	for _, p := range s.metrics {
		errs = append(errs, p.Close())
	}
	errs = append(errs, s.node.Close())
	s.clients.each((*conn).kill)
	s.flushers.stop()
	s.polling.stop()
	s.wg.Wait()
	errs = append(errs, s.closeAudit())
	return errors.Join(errs...)
}
