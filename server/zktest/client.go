package zktest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/client"
)

// Client connects a client to the server without a socket and closes it when the test t
// ends. When Client returns, the client has its first session. If you need several clients,
// each with its own session, call it several times.
func (s *Server) Client(t TB, opts ...client.Option) *client.Client {
	t.Helper()
	if s.outside != nil {
		return connectClient(t, s.outside.addrs, opts)
	}
	dial := func(context.Context, string, string) (net.Conn, error) { return s.Dial() }
	return connectClient(t, "127.0.0.1", append([]client.Option{client.WithDialer(dial)}, opts...))
}

// Client connects a client to one of the servers without a socket, as [Server.Client]
// does. The client moves to another server when that one fails.
func (c *Cluster) Client(t TB, opts ...client.Option) *client.Client {
	t.Helper()
	if c.outside != nil {
		return connectClient(t, c.outside.addrs, opts)
	}
	dial := func(_ context.Context, _, address string) (net.Conn, error) { return c.dial(address) }
	return connectClient(t, strings.Join(c.Hosts(), ","), append([]client.Option{client.WithDialer(dial)}, opts...))
}

// dial connects to the member with the given address from Hosts.
func (c *Cluster) dial(address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	id, err := strconv.Atoi(port)
	if err != nil || id < 1 || id > len(c.servers) {
		return nil, fmt.Errorf("zktest: %s is not one of %v", address, c.Hosts())
	}
	return c.servers[id-1].Dial()
}

func connectClient(t TB, hosts string, opts []client.Option) *client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := client.Connect(ctx, hosts, opts...)
	if err != nil {
		t.Fatalf("zktest: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() }) // it's no failure if the server is already gone
	return c
}
