package client_test

import (
	"context"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/server/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for something that should happen.
const patience = 60 * time.Second

// bounded returns a context with a time limit for a test's operations.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// dialer connects to a server in this process.
func dialer(zs *zktest.Server) client.Option {
	return client.WithDialer(func(context.Context, string, string) (net.Conn, error) { return zs.Dial() })
}

// connect opens a client, which is closed at the end of the test.
func connect(t testing.TB, zs *zktest.Server, opts ...client.Option) *client.Client {
	t.Helper()
	c, err := client.Connect(bounded(t), "zk", append([]client.Option{dialer(zs)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// must fails the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// await returns the next value from a channel.
func await[T any](t testing.TB, ch <-chan T, what string) (v T, ok bool) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v, ok = <-ch:
		return v, ok
	case <-timer.C:
		t.Fatalf("no %s within %v", what, patience)
		return v, false
	}
}

// splitAddr is net.SplitHostPort.
func splitAddr(addr string) (host, port string, err error) { return net.SplitHostPort(addr) }

// localhost is a resolver that needs no name server.
func localhost(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }

// counting is localhost, and also sends on ch for each call.
func counting(ch chan<- struct{}) func(context.Context, string) ([]string, error) {
	return func(ctx context.Context, host string) ([]string, error) {
		select {
		case ch <- struct{}{}:
		default:
		}
		return localhost(ctx, host)
	}
}

func withTimeout(t testing.TB, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}
