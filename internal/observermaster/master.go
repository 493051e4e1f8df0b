package observermaster

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
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
	// Source reports whether the state comes from another ensemble, or why there is no state for
	// observers yet; nil: neither.
	Source func() (copies bool, err error)
	// Sync proposes a sync, and calls done once it is applied here.
	Sync func(done func(error)) error
	// TLS begins TLS with an observer, which it may refuse; nil: plaintext.
	TLS func(conn net.Conn, by time.Time) (net.Conn, error)
	// Users may log in with SASL DIGEST-MD5; nil: no SASL. RequireLogin rejects observers
	// that don't.
	Users        sasl.Users
	RequireLogin bool
	// Tick, InitLimit and SyncLimit have the configured values.
	Tick                 time.Duration
	InitLimit, SyncLimit int
	Logger               *slog.Logger
}

// silence limits how long an observer may be silent, and the duration of a write.
func (c *Config) silence() time.Duration { return c.Tick * time.Duration(c.SyncLimit) }

// loading limits the time in which an observer loads the state from us.
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
	conns  map[net.Conn]*observer
	work   sync.WaitGroup
}

// New returns a Master of the observers that connect to l, which it owns.
func New(cfg Config, l net.Listener) *Master {
	return &Master{cfg: cfg, l: l, conns: make(map[net.Conn]*observer)}
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
		o := newObserver(m, conn)
		if !m.begin(o) {
			m.cfg.Logger.Warn("rejecting an observer: too many observers", "from", conn.RemoteAddr().String(), "limit", maxObservers)
			_ = conn.Close()
			continue
		}
		go m.serve(o)
	}
}

// begin registers a connection, unless there are too many.
func (m *Master) begin(o *observer) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || len(m.conns) >= maxObservers {
		return false
	}
	m.conns[o.raw] = o
	m.work.Add(1)
	return true
}

func (m *Master) serve(o *observer) {
	defer m.work.Done()
	conn, err := o.raw, o.run()
	_ = conn.Close() // it may be closed already
	m.mu.Lock()
	delete(m.conns, conn)
	closed := m.closed
	m.mu.Unlock()
	if !closed {
		m.cfg.Logger.Info("an observer has disconnected", "from", conn.RemoteAddr().String(), "id", o.id, "reason", err)
	}
}

// Observers returns the number of observers that are in sync, i.e. receive each transaction as it
// is applied.
func (m *Master) Observers() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.conns {
		if o.synced {
			n++
		}
	}
	return n
}

// Lag is how far behind an observer in sync is.
type Lag struct {
	Observer string // its number and the address that it calls from
	// Transactions counts the applied transactions that we have not sent to it. Behind is the time
	// since it last had everything, as far as we know from its confirmations of pings.
	Transactions int64
	Behind       time.Duration
}

// Lags returns the lag of each observer in sync. Of several observers with the same name, the one
// that lags most counts.
func (m *Master) Lags() (list []Lag) {
	next, _ := m.cfg.History.end()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.conns {
		if !o.synced {
			continue
		}
		own := o.lag(next)
		i := slices.IndexFunc(list, func(l Lag) bool { return l.Observer == own.Observer })
		if i < 0 {
			list = append(list, own)
			continue
		}
		list[i].Transactions, list[i].Behind = max(list[i].Transactions, own.Transactions), max(list[i].Behind, own.Behind)
	}
	slices.SortFunc(list, func(a, b Lag) int { return strings.Compare(a.Observer, b.Observer) })
	return list
}

// Addr returns the listener's address.
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
