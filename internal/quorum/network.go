package quorum

import (
	"context"
	"net"
	"time"
)

// Network creates the listeners and the connections of a server. Addresses are host:port;
// a host name is resolved at every call, so a peer that returns with a new address is
// found.
type Network interface {
	Listen(addr string) (net.Listener, error)
	Dial(ctx context.Context, addr string) (net.Conn, error)
}

// TCP is the kernel's network.
type TCP struct{}

// keepAlive lets the kernel notice a peer whose host vanished silently.
const keepAlive = 5 * time.Second

// Listen listens on addr.
func (TCP) Listen(addr string) (net.Listener, error) {
	lc := net.ListenConfig{KeepAlive: keepAlive}
	return lc.Listen(context.Background(), "tcp", addr)
}

// Dial connects to addr.
func (TCP) Dial(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{KeepAlive: keepAlive}
	return d.DialContext(ctx, "tcp", addr)
}
