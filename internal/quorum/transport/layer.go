package transport

import (
	"net"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

// layer is the raft.StreamLayer for one class of requests: either those on Raft's main
// streams, or requests like heartbeats that are answered immediately and have a shorter
// limit. All layers of a Transport share its links.
type layer struct {
	links *links
	limit time.Duration
	done  chan struct{} // closed by Close
}

// network returns Raft's network layer for requests that must make progress within limit.
func network(l *links, limit time.Duration) *raft.NetworkTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream:  &layer{links: l, limit: limit, done: make(chan struct{})},
		MaxPool: maxPool,
		// Pipelining never recovers from a follower's first error.
		MaxRPCsInFlight: 1,
		Timeout:         quorum.HandshakeTimeout + quorum.ConnectTimeout, // limits connecting; outConn bounds the rest
		Logger:          l.cfg.Logger,
	})
}

// Accept never returns a connection to raft.NetworkTransport, because that decoder trusts
// its input. The receiver reads the incoming messages instead.
func (l *layer) Accept() (net.Conn, error) {
	<-l.done
	return nil, net.ErrClosed
}

// Dial implements raft.StreamLayer.
func (l *layer) Dial(t raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return l.links.dial(t, timeout, l.limit)
}

// Close implements raft.StreamLayer. It is called once, by raft.NetworkTransport.
func (l *layer) Close() error {
	close(l.done)
	return nil
}

// Addr implements raft.StreamLayer.
func (l *layer) Addr() net.Addr { return netAddr(l.links.cfg.Addr) }

type netAddr string

func (netAddr) Network() string  { return "raft" }
func (a netAddr) String() string { return string(a) }
