package learner

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/internal/zab"
	"github.com/zkgo/zkgo/tree"
)

// Config says which ensemble to follow, and from where.
type Config struct {
	// Addrs are the quorum addresses of all voters, host:port. Only the leader listens
	// there.
	Addrs []string
	// ID is the number that the leader knows the observer by. No server of the ensemble
	// may have it.
	ID int64
	// TLS is the configuration for an ensemble with sslQuorum; nil means plaintext.
	TLS *tls.Config
	// User and Password authenticate the observer with DIGEST-MD5, for an ensemble with
	// quorum.auth.enableSasl. An empty User means no SASL.
	User, Password string
	// Policy only matters for TTL znodes (see zkfiles.Source).
	Policy tree.Policy
	// Touched appends the sessions that our clients have used since the last call. It is
	// called for each ping of the leader, which then doesn't expire them. Nil means that
	// we have no clients.
	Touched func(to []Touch) []Touch
	// MaxRequest is the ensemble's jute.maxbuffer, which limits requests. Default
	// ZooKeeper's, 1,048,575 bytes.
	MaxRequest int
	// Limits limits the size of fields and packets.
	Limits zkfiles.Limits
	// DialTimeout limits the time until a connection is established; default 5 s.
	DialTimeout time.Duration
	// SyncTimeout limits the time without a byte from the leader until the state is
	// exact. The leader waits for a quorum in this time. Default 30 s.
	SyncTimeout time.Duration
	// SilenceTimeout limits the time without a byte from the leader after that. A leader
	// sends a ping every half tick. Default 10 s.
	SilenceTimeout time.Duration
	// Dial connects to an address. The default is net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// withDefaults returns a copy of c with the defaults in it.
func (c Config) withDefaults() Config {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&c.DialTimeout, 5*time.Second)
	set(&c.SyncTimeout, 30*time.Second)
	set(&c.SilenceTimeout, 10*time.Second)
	if c.MaxRequest <= 0 {
		c.MaxRequest = defaultMaxRequest
	}
	if c.Limits.MaxField <= 0 {
		c.Limits.MaxField = zkfiles.DefaultMaxField
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	return c
}

// defaultMaxRequest is the default of jute.maxbuffer in ZooKeeper.
const defaultMaxRequest = 0xfffff

// maxPacket is the maximum length of a packet's data in bytes.
func (c *Config) maxPacket() int { return c.Limits.MaxField + zab.PacketOverhead }
