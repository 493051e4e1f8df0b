package zktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/server"
)

// Server is a server that a test runs, standalone or as a member of a Cluster.
type Server struct {
	t       TB
	opts    options
	id      int // in its cluster; 1 if standalone
	name    string
	clock   *clock
	logs    *logs
	gate    *gate
	dir     string                    // "": in memory
	disk    *faultyDisk               // nil in memory
	stopped atomic.Pointer[time.Time] // when the clock was stopped; nil: it runs
	members []raftfsm.Member
	network quorum.Network // nil if standalone
	cluster *Cluster       // nil if standalone

	conversation *Recording // nil without WithConversation
	outside      *outside   // nil: the server is in this process

	mu       sync.Mutex
	up       bool
	over     bool // Close was called
	listener net.Listener
	wg       sync.WaitGroup // accept
	closing  chan error     // receives the error of a killed server's Close; used by the test's goroutine only
}

// Run starts a server for the duration of a test, a subtest or a benchmark. The
// server doesn't listen until Addrs is called. If the test fails, the znodes and the
// server's log are written to the test's log.
//
// If the environment variable ZKTEST_ADDR names the servers of an ensemble, e.g. of
// ZooKeeper, the test runs with that: it begins with an empty tree, alone, and skips itself
// when it calls a method that needs a server in this process, e.g. for faults or the clock.
func Run(t TB, opts ...Option) *Server {
	t.Helper()
	o := newOptions(opts)
	if x := outsideNow(t, o); x != nil {
		return &Server{t: t, opts: o, id: 1, name: "server", outside: x}
	}
	s := newServer(t, o, 1, "server", newClock(), &logs{t: t, now: o.logs})
	t.Cleanup(func() {
		if t.Failed() && s.Server() != nil {
			t.Logf("zktest: the znodes at the end:\n%s", s.Dump())
			s.showConversation()
		}
		s.Close()
		s.logs.end()
	})
	if o.addr != "" {
		s.Addrs() // report an unavailable port before the server starts
	}
	if err := s.start(); err != nil {
		t.Fatalf("zktest: start: %v", err)
	}
	if !s.awaitReady() {
		t.Fatalf("zktest: the server does not serve within %v", patience)
	}
	return s
}

func newServer(t TB, o options, id int, name string, c *clock, l *logs) *Server {
	s := &Server{t: t, opts: o, id: id, name: name, clock: c, logs: l}
	s.gate = newGate(c, func(format string, args ...any) {
		t.Helper()
		l.printf(name+": "+format, args...)
	})
	if o.record {
		s.conversation = s.Record(Match{})
	}
	if o.onDisk {
		s.dir, s.disk = filepath.Join(t.TempDir(), name), &faultyDisk{FS: vfs.OS{}}
	}
	return s
}

// start starts the server, initially or after Kill.
func (s *Server) start() error {
	cfg := server.Config{Znodes: server.Znodes{ContainerInterval: time.Minute, ExtendedTypes: true}, Limits: server.Limits{MaxClientCnxns: -1}, FourLetterWords: []string{"*"},
		LocalSessions: true} // lets a test connect to a server that it makes read-only
	for _, change := range s.opts.configure {
		change(&cfg)
	}
	cfg.Quorum.ID, cfg.Quorum.Members, cfg.Env.Network = uint64(s.id), s.members, s.network
	cfg.Memory, cfg.DataDir, cfg.Log.Dir = s.dir == "", s.dir, s.dir
	if s.disk != nil {
		cfg.Env.FS = s.disk
	}
	cfg.Env.Now, cfg.Logger, cfg.Env.Interceptor = s.now, s.logs.logger(s.name), s.gate
	srv, err := server.Start(context.Background(), cfg)
	if err != nil {
		return err
	}
	s.gate.srv.Store(srv)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up = true
	return nil
}

func (s *Server) awaitReady() bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-s.Server().Ready():
		return true
	case <-timer.C:
		return false
	}
}

// Server returns the underlying server. Use it for features that this package doesn't
// cover.
func (s *Server) Server() *server.Server {
	s.inProcess(needsServer)
	return s.gate.srv.Load()
}

// ID returns the server's id in its cluster, or 1 for a standalone server.
func (s *Server) ID() int { return s.id }

// Running reports whether the server runs, i.e. was neither closed nor killed.
func (s *Server) Running() bool { return s.outside != nil || s.isUp() }

// Paused reports whether the server is paused.
func (s *Server) Paused() bool {
	if s.outside != nil {
		return false
	}
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	return s.gate.paused
}

func (s *Server) isUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up
}

// Addrs returns the server's client address: one TCP address on this host. The first
// call opens the port, a free one unless WithAddr was given. The address stays the
// same when a member of a cluster is killed and restarted.
func (s *Server) Addrs() []string {
	s.t.Helper()
	if s.outside != nil {
		return s.outside.list()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		if s.over {
			s.t.Fatal("zktest: Addrs of a server that is closed")
		}
		addr, err := s.opts.listenAddr(s.id)
		if err != nil {
			s.t.Fatalf("zktest: %v", err)
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			s.t.Fatalf("zktest: %v", err)
		}
		s.listener = l
		s.wg.Go(func() { s.accept(l) })
	}
	return []string{s.listener.Addr().String()}
}

// accept passes every connection to the server if it runs.
func (s *Server) accept(l net.Listener) {
	for {
		nc, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		switch {
		case err != nil: // out of file descriptors: clients retry
			time.Sleep(longestPause)
		case s.isUp():
			s.Server().ServeConn(nc)
		default:
			_ = nc.Close()
		}
	}
}

// Dial connects to the server without a socket. The connection also works in a bubble
// of testing/synctest.
func (s *Server) Dial() (net.Conn, error) {
	if s.outside != nil {
		return s.outside.dial()
	}
	if !s.isUp() || s.gate.isRefusing() {
		return nil, &net.OpError{Op: "dial", Net: "zktest", Err: syscall.ECONNREFUSED}
	}
	return s.Server().Dial()
}

// Dialer returns Dial as a function for go-zookeeper's WithDialer. It ignores the
// address; "127.0.0.1" needs no name resolution.
func (s *Server) Dialer() func(network, address string, timeout time.Duration) (net.Conn, error) {
	return func(string, string, time.Duration) (net.Conn, error) { return s.Dial() }
}

// Close stops the server before the test ends. The test can still read the server's
// tree. Calling Close twice is safe.
func (s *Server) Close() {
	s.t.Helper()
	if s.outside != nil {
		return
	}
	s.mu.Lock()
	l, was := s.listener, s.up
	s.listener, s.up, s.over = nil, false, true
	s.mu.Unlock()
	if l != nil {
		_ = l.Close()
	}
	s.wg.Wait()
	s.standStill(false) // a paused server can't close
	s.awaitKilled()
	if srv := s.Server(); srv != nil && was {
		if err := srv.Close(); err != nil && !s.disk.hasFailed() {
			s.t.Errorf("zktest: close: %v", err)
		}
	}
}

// fatalf fails the test with a message that names this server.
func (s *Server) fatalf(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("zktest: %s: %s", s.name, fmt.Sprintf(format, args...))
}
