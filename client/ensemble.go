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

// ConfigPath is the znode that holds the ensemble's list of servers.
const ConfigPath = "/zookeeper/config"

// Reconfiguration says how the ensemble is to change: either Joining and Leaving,
// or Members.
type Reconfiguration struct {
	// Joining are servers to add or change, as "server.4=host:2888:3888;2181".
	Joining []string
	// Leaving are the ids of servers to remove.
	Leaving []string
	// Members replace all servers.
	Members []string
	// Version is the [Config].Version that the change is based on, or [AnyVersion].
	Version int64
}

// Config is the ensemble as /zookeeper/config has it.
type Config struct {
	// Text as ZooKeeper writes it, a line for every server.
	Text string
	// Version is the zxid of the change that made it.
	Version int64
	// Clients are the addresses for clients, host:port, of servers that name one.
	Clients []string
	// Stat of the znode.
	Stat Stat
}

// Config returns the ensemble's servers. It ignores chroot and namespace.
func (c *Client) Config(ctx context.Context) (Config, error) {
	data, stat, err := c.atRoot().Get(ctx, ConfigPath)
	if err != nil {
		return Config{}, err
	}
	return parseConfig(data, stat), nil
}

// ConfigW is Config, and leaves a one-shot watch for the next change.
func (c *Client) ConfigW(ctx context.Context) (Config, *Watch, error) {
	data, stat, w, err := c.atRoot().GetW(ctx, ConfigPath)
	if err != nil {
		return Config{}, nil, err
	}
	return parseConfig(data, stat), w, nil
}

// Reconfig changes the ensemble's servers and returns how they are then.
//
// If the connection is lost or ctx ends after the request was sent, the error
// matches [ErrUnknownOutcome]; Config tells.
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

// parseConfig reads lines as "server.1=host:2888:3888:participant;host:2181" and
// "version=100000000". What it does not understand it leaves in Text.
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

// clientAddress returns where clients find a server, "" if that is not said. A
// server that listens on all addresses is found where its peers find it.
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

// followConfig keeps the list of servers as /zookeeper/config says, for
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
			if !slices.Equal(k.servers, cfg.Clients) {
				k.servers = cfg.Clients
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

// How often a server with a quorum is looked for in read-only mode.
const (
	seekBase = 100 * time.Millisecond
	seekMax  = time.Minute
)

// errQuorumFound is why a link to a read-only server ends.
var errQuorumFound = errors.New("another server has a quorum")

// seekQuorum looks for a server with a quorum while a link is to one without,
// and ends the link when there is one.
func (c *core) seekQuorum(l *link, names []string) {
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

// hasQuorum asks a server with the four-letter word isro.
func (c *core) hasQuorum(ctx context.Context, t target) bool {
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
