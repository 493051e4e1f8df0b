package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// ConfigPath is the znode with the ensemble's list of servers.
const ConfigPath = "/zookeeper/config"

// Reconfiguration describes a change of the ensemble: either Joining and Leaving, or
// Members.
type Reconfiguration struct {
	// Joining lists servers to add or change, e.g. "server.4=host:2888:3888;2181".
	Joining []string
	// Leaving lists the ids of servers to remove.
	Leaving []string
	// Members lists the servers that replace all current ones.
	Members []string
	// Version is the [Config].Version that the change is based on, or [AnyVersion].
	Version int64
}

// Config is the ensemble's configuration, as stored in /zookeeper/config.
type Config struct {
	// Text is the configuration in ZooKeeper's format, one line per server.
	Text string
	// Version is the zxid of the change that made this configuration.
	Version int64
	// Clients lists the client addresses, host:port, of the servers that have one.
	Clients []string
	// Stat is the metadata of the znode.
	Stat Stat
}

// Config returns the ensemble's configuration. It ignores chroot and namespace.
func (c *Client) Config(ctx context.Context) (Config, error) {
	data, stat, err := c.atRoot().Get(ctx, ConfigPath)
	if err != nil {
		return Config{}, err
	}
	return parseConfig(data, stat), nil
}

// ConfigW is like Config, and sets a one-shot watch for the next change.
func (c *Client) ConfigW(ctx context.Context) (Config, *Watch, error) {
	data, stat, w, err := c.atRoot().GetW(ctx, ConfigPath)
	if err != nil {
		return Config{}, nil, err
	}
	return parseConfig(data, stat), w, nil
}

// Reconfig changes the ensemble's servers and returns the new configuration.
//
// If the connection is lost or ctx ends after the request was sent, the error matches
// [ErrUnknownOutcome]. Config then shows whether the change took effect.
func (c *Client) Reconfig(ctx context.Context, r Reconfiguration) (Config, error) {
	list := func(v []string) string {
		if len(v) == 0 {
			return proto.NullString
		}
		return strings.Join(v, ",")
	}
	q := &proto.ReconfigRequest{Joining: list(r.Joining), Leaving: list(r.Leaving), NewMembers: list(r.Members), CurConfigID: r.Version}
	k, err := c.perform(ctx, request{op: proto.OpReconfig, rec: q, noCheck: true})
	if err != nil {
		return Config{}, err
	}
	defer c.core.free(k)
	return parseConfig(k.bytes, k.stat), nil
}

// atRoot returns c without chroot and namespace.
func (c *Client) atRoot() *Client {
	v := *c
	v.prefix = ""
	return &v
}

// parseConfig reads lines like "server.1=host:2888:3888:participant;host:2181" and
// "version=100000000". Lines that it doesn't understand appear only in Text.
func parseConfig(data []byte, stat Stat) Config {
	g := Config{Text: string(data), Stat: stat}
	for line := range strings.Lines(g.Text) {
		line = strings.TrimSpace(line)
		key, value, _ := strings.Cut(line, "=")
		switch {
		case key == "version":
			if _, err := fmt.Sscanf(value, "%x", &g.Version); err != nil {
				g.Version = 0
			}
		case strings.HasPrefix(key, "server."):
			if addr := clientAddress(value); addr != "" {
				g.Clients = append(g.Clients, addr)
			}
		}
	}
	return g
}

// clientAddress returns the client address of a server, or "". If the server listens on all
// addresses, we use the host of the peer address.
func clientAddress(server string) string {
	peer, client, ok := strings.Cut(server, ";")
	if !ok || client == "" {
		return ""
	}
	host, port := "", client
	if i := strings.LastIndexByte(client, ':'); i >= 0 {
		host, port = strings.Trim(client[:i], "[]"), client[i+1:]
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		first, _, _ := strings.Cut(peer, "|")
		if strings.HasPrefix(first, "[") {
			host, _, _ = strings.Cut(first[1:], "]")
		} else {
			host, _, _ = strings.Cut(first, ":")
		}
	}
	if host == "" {
		return ""
	}
	return net.JoinHostPort(host, port)
}

// followConfig updates the list of servers from /zookeeper/config, for
// WithConfigTracking.
func (c *Client) followConfig() {
	k := c.core
	pause := newBackoff(reconnectBase, reconnectMax)
	for k.ctx.Err() == nil {
		cfg, w, err := c.ConfigW(k.ctx)
		if err != nil {
			if errors.Is(err, ErrClosed) {
				return
			}
			pause.sleep(k.ctx)
			continue
		}
		pause.reset()
		if len(cfg.Clients) > 0 {
			k.mu.Lock()
			if !slices.Equal(k.connector.servers, cfg.Clients) {
				k.connector.servers = cfg.Clients
			}
			k.mu.Unlock()
		}
		select {
		case <-w.Events():
		case <-k.ctx.Done():
			return
		}
	}
}

// The backoff between searches for a server with a quorum in read-only mode.
const (
	seekBase = 100 * time.Millisecond
	seekMax  = time.Minute
)

// errQuorumFound is the reason why a link to a read-only server ends.
var errQuorumFound = errors.New("another server has a quorum")

// seekQuorum looks for a server with a quorum while the link l is connected to a read-only
// server. We end l when we find one.
func (c *connector) seekQuorum(l *link, names []string) {
	pause := newBackoff(seekBase, seekMax)
	h := newHosts(&c.cfg, names)
	for {
		pause.sleep(c.ctx)
		select {
		case <-l.done:
			return
		case <-c.ctx.Done():
			return
		default:
		}
		ctx, cancel := context.WithTimeout(c.ctx, leastConnectTime)
		if t, _, err := h.next(ctx); err == nil && c.hasQuorum(ctx, t) {
			cancel()
			l.fail(errQuorumFound)
			return
		}
		cancel()
	}
}

// hasQuorum asks a server with the four-letter word isro whether it has a quorum.
func (c *connector) hasQuorum(ctx context.Context, t target) bool {
	conn, err := c.dial(ctx, t)
	if err != nil {
		return false
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := conn.Write([]byte("isro")); err != nil {
		return false
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 16))
	return err == nil && strings.TrimSpace(string(answer)) == "rw"
}
