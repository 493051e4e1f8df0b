package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of a test.
const patience = 90 * time.Second

// timeout is the usual session timeout. We choose it long enough that no session expires on
// a slow machine. Tests that wait for expiry use short, the minimum that servers grant.
const (
	timeout = 40 * time.Second
	short   = 4 * time.Second
)

// forEach runs a test against every kind of server.
func forEach(t *testing.T, test func(t *testing.T, addr string)) {
	t.Parallel()
	t.Run("zkgo", func(t *testing.T) { test(t, zktest.Run(t).Addrs()[0]) })
	t.Run("apache", func(t *testing.T) { test(t, apache(t)) })
	if addr := os.Getenv("ZKGO_CLIENT_ADDR"); addr != "" {
		root := fmt.Sprintf("/suite-%d", time.Now().UnixNano())
		t.Run(addr, func(t *testing.T) { test(t, addr+root) })
	}
}

// apache starts a real ZooKeeper and returns its address.
func apache(t *testing.T) string {
	t.Helper()
	if os.Getenv("ZKGO_LIVE") != "1" && os.Getenv(oracle.RequireEnv) != "1" {
		t.Skip("set ZKGO_LIVE=1 to run this against Apache ZooKeeper")
	}
	s := oracle.Start(t, oracle.Options{Config: []string{"tickTime=2000"}, JVM: []string{"-Dzookeeper.extendedTypesEnabled=true"}})
	return s.Addr()
}

// bounded returns a context for a test's operations.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// wire is the network between a client and its server.
type wire struct {
	mu    sync.Mutex
	conns []*deafConn
	block bool // fail new connections
}

// deafConn is one connection.
type deafConn struct {
	net.Conn
	deaf atomic.Bool // permanently: replies are discarded
}

// Read discards everything received while the connection is deaf.
func (c *deafConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if !c.deaf.Load() || err != nil {
			return n, err
		}
	}
}

// dial is for client.WithDialer.
func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.block {
		return nil, net.ErrClosed
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &deafConn{Conn: conn}
	w.conns = append(w.conns, c)
	return c, nil
}

// cut closes all connections.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

// deafen makes all current connections discard replies.
func (w *wire) deafen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.deaf.Store(true)
	}
}

// refuse sets whether new connections are refused.
func (w *wire) refuse(yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.block = yes
}

// old reports, and logs, that a server is too old for a feature.
func old(t testing.TB, err error) bool {
	t.Helper()
	if os.Getenv("ZKGO_CLIENT_ADDR") == "" || !errors.Is(err, client.ErrUnimplemented) {
		return false
	}
	t.Logf("the server does not have that: %v", err)
	return true
}

// connect connects a client over a wire.
func connect(t testing.TB, addr string, opts ...client.Option) (*client.Client, *wire) {
	t.Helper()
	w := new(wire)
	opts = append([]client.Option{client.WithDialer(w.dial), client.WithSessionTimeout(timeout)}, opts...)
	c := must.Get(client.Connect(bounded(t), addr, opts...))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c, w
}

// until reads states until want arrives.
func until(t testing.TB, s *client.StateSubscription, want client.State) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case got, ok := <-s.C():
			if !ok {
				t.Fatalf("the states ended without %v", want)
			}
			if got.State == want {
				return
			}
		case <-timer.C:
			t.Fatalf("no %v within %v", want, patience)
		}
	}
}

// expect reads an event.
func expect(t testing.TB, w *client.Watch, typ client.EventType, path string) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case e := <-w.Events():
		if e.Type != typ || e.Path != path {
			t.Fatalf("%+v came, not %v of %s", e, typ, path)
		}
	case <-timer.C:
		t.Fatalf("no %v of %s within %v", typ, path, patience)
	}
}
