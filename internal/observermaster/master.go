package observermaster

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/zkgo/zkgo/internal/sasl"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// Config configures a Master.
type Config struct {
	Tree     *tree.Tree
	Sessions *session.Table // guarded by the tree's lock
	History  *History       // of the same state
	// WriteBody writes the state as a leader sends it to a learner (zkfiles.WriteBody).
	WriteBody func(w io.Writer, snap *tree.Snapshot, sessions *session.Table) error
	// Sync proposes a sync, and calls done once it is applied here.
	Sync func(done func(error)) error
	// TLS returns the configuration for the next handshake; nil: plaintext. AcceptPlain
	// accepts plaintext too.
	TLS         func() *tls.Config
	AcceptPlain bool
	// Users may log in with SASL DIGEST-MD5; nil: no SASL. RequireLogin turns away observers
	// that don't.
	Users        sasl.Users
	RequireLogin bool
	// Tick, InitLimit and SyncLimit are those of the configuration file.
	Tick                 time.Duration
	InitLimit, SyncLimit int
	Logger               *slog.Logger
}

// silence is how long an observer may say nothing, and how long a write may take.
func (c *Config) silence() time.Duration { return c.Tick * time.Duration(c.SyncLimit) }

// loading is how long an observer may take until it has loaded what it was sent.
func (c *Config) loading() time.Duration {
	return c.Tick * time.Duration(max(c.InitLimit, c.SyncLimit))
}

// maxObservers limits the connections. A standby has one, whatever its size.
const maxObservers = 32

// Master serves observers.
type Master struct {
	cfg Config
	l   net.Listener

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
	synced int // observers that get each transaction as it is applied
	work   sync.WaitGroup
}

// New returns a Master of the observers that connect to l, which it owns.
func New(cfg Config, l net.Listener) *Master {
	return &Master{cfg: cfg, l: l, conns: make(map[net.Conn]struct{})}
}

// Serve accepts observers until Close.
func (m *Master) Serve() {
	pause := time.Duration(0)
	for {
		conn, err := m.l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // e.g. too many open files
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			time.Sleep(pause)
			continue
		}
		pause = 0
		if !m.begin(conn) {
			m.cfg.Logger.Warn("an observer is turned away: there are too many", "from", conn.RemoteAddr().String(), "limit", maxObservers)
			_ = conn.Close()
			continue
		}
		go m.serve(conn)
	}
}

// begin registers a connection, unless there are too many.
func (m *Master) begin(conn net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || len(m.conns) >= maxObservers {
		return false
	}
	m.conns[conn] = struct{}{}
	m.work.Add(1)
	return true
}

func (m *Master) serve(conn net.Conn) {
	defer m.work.Done()
	o := newObserver(m, conn)
	err := o.run()
	_ = conn.Close() // it may be closed already
	m.mu.Lock()
	delete(m.conns, conn)
	if o.synced {
		m.synced--
	}
	closed := m.closed
	m.mu.Unlock()
	if !closed {
		m.cfg.Logger.Info("an observer has left", "from", conn.RemoteAddr().String(), "id", o.id, "reason", err)
	}
}

// Observers returns the number of observers that get each transaction as it is applied.
func (m *Master) Observers() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.synced
}

// Addr returns the address that it listens at.
func (m *Master) Addr() string { return m.l.Addr().String() }

// Close closes the listener and all connections, and waits for their goroutines.
func (m *Master) Close() error {
	m.mu.Lock()
	m.closed = true
	err := m.l.Close()
	for conn := range m.conns {
		_ = conn.Close()
	}
	m.mu.Unlock()
	m.work.Wait()
	return err
}
