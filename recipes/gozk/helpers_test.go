package gozk_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/gozk"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
	"github.com/zkgo/zkgo/tests/kit/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const sessionTimeout = 10 * time.Second

// quiet is a logger that discards everything.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// peer is a connection for recipes, together with the network that a test can
// disturb.
type peer struct {
	recipes.Conn
	zk  *zk.Conn // nil for zkgo's client
	net *network
}

// session returns the id of the peer's session.
func (p *peer) session(t *testing.T) int64 {
	t.Helper()
	s := must.Get(p.Session(rig.Within(t)))(t)
	return s.ID()
}

// servers are all the same server to the dialer. A *zk.Conn that has tried all of its
// servers in turn drops the requests that it could not send, so we give it several.
var servers = []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4"}

// open connects a *zk.Conn.
func open(t *testing.T, zs *zktest.Server) *peer {
	t.Helper()
	n := &network{dial: zs.Dialer()}
	d := gozk.NewDialer(n.Dial)
	c, events, err := zk.Connect(servers, sessionTimeout, zk.WithLogger(quiet{}), zk.WithLogInfo(false), zk.WithDialer(d.Dial))
	must.Do(t, err)
	t.Cleanup(c.Close)
	p := &peer{Conn: gozk.On(c, events, d), zk: c, net: n}
	p.session(t)
	return p
}

// ours connects zkgo's client.
func ours(t *testing.T, zs *zktest.Server) *peer {
	t.Helper()
	return &peer{Conn: recipes.On(zs.Client(t))}
}

// clients are the clients that each test runs with.
var clients = map[string]func(*testing.T, *zktest.Server) *peer{"client": ours, "go-zookeeper": open}

// each runs a test with every client.
func each(t *testing.T, test func(t *testing.T, zs *zktest.Server, open func(*testing.T, *zktest.Server) *peer)) {
	t.Helper()
	t.Parallel()
	for name, open := range clients {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, zs *zktest.Server) { test(t, zs, open) })
		})
	}
}

// overGozk opens the client that package steps injects faults into.
func overGozk(e *steps.Env) (recipes.Conn, int64) {
	p := open(e.T, e.Server)
	return p, p.session(e.T)
}

// reconnects skips, under the race detector, a test in which a *zk.Conn with watches
// reconnects: go-zookeeper 1.0.4 then reads the last zxid while it may already be
// writing the next one (conn.go, sendSetWatches and recvLoop).
func reconnects(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("go-zookeeper/zk 1.0.4 has a race of its own when it connects again")
	}
}

// network is a network that a test can stop.
type network struct {
	dial zk.Dialer

	mu    sync.Mutex
	still chan struct{} // writes block until it is closed, then they fail
}

func (n *network) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	c, err := n.dial(network, address, timeout)
	if err != nil {
		return nil, err
	}
	return &wire{Conn: c, n: n}, nil
}

// hold makes writes block. After release they fail, and the network works again.
func (n *network) hold() (release func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	still := make(chan struct{})
	n.still = still
	return func() {
		n.mu.Lock()
		n.still = nil
		n.mu.Unlock()
		close(still)
	}
}

type wire struct {
	net.Conn
	n *network
}

func (w *wire) Write(p []byte) (int, error) {
	w.n.mu.Lock()
	still := w.n.still
	w.n.mu.Unlock()
	if still != nil {
		<-still
		_ = w.Close()
		return 0, net.ErrClosed
	}
	return w.Conn.Write(p)
}
