package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"time"

	"github.com/zkgo/zkgo/raftfsm"
)

// ErrDataInUse reports that another server has the data directory open.
var ErrDataInUse = raftfsm.ErrInUse

// ListenError reports that the server can't listen on an address.
type ListenError struct {
	// Setting is the key of zoo.cfg that names the port.
	Setting string
	// Addr is the address, as host:port.
	Addr string
	// Err is the system's error.
	Err error
}

// Error names the setting, the address and the cause.
func (e *ListenError) Error() string {
	switch {
	case addressInUse(e.Err):
		return fmt.Sprintf("%s: the port of %s is in use by another process: %v", e.Setting, e.Addr, e.Err)
	case errors.Is(e.Err, fs.ErrPermission):
		return fmt.Sprintf("%s: no permission to listen on %s: %v; on Linux ports below 1024 need root or CAP_NET_BIND_SERVICE", e.Setting, e.Addr, e.Err)
	}
	return fmt.Sprintf("%s: cannot listen on %s: %v", e.Setting, e.Addr, e.Err)
}

// Unwrap returns the system's error.
func (e *ListenError) Unwrap() error { return e.Err }

// checkPorts opens and closes every port that the server will listen on for clients and
// operators. So an unavailable port is found before a data directory is created, and
// before the server reports that it has started. The ports stay closed while the server
// reads its state: a client then tries another server instead of waiting.
func checkPorts(ctx context.Context, c *Config) error {
	for _, p := range c.ports() {
		l, err := c.awaitName(ctx, p, listenTCP)
		if err != nil {
			return p.failed(err)
		}
		if err := l.Close(); err != nil {
			return fmt.Errorf("%s: %w", p.setting, err)
		}
	}
	return nil
}

// failed returns the error of listening at p.
func (p port) failed(err error) error {
	return &ListenError{Setting: p.setting, Addr: p.addr, Err: err}
}

func listenTCP(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }

// awaitName calls listen for the address of p. It tries again while the host name
// doesn't resolve, as often as for the quorum port: the own name of a pod resolves only
// some time after its start.
func (c *Config) awaitName(ctx context.Context, p port, listen func(addr string) (net.Listener, error)) (net.Listener, error) {
	for try := 1; ; try++ {
		l, err := listen(p.addr)
		if err == nil || !unresolved(err) || try == c.Quorum.BindTries {
			return l, err
		}
		if try%bindNews == 1 {
			c.Logger.Warn("waiting for the host name of a port to resolve", "setting", p.setting, "address", p.addr, "error", err,
				"attempt", try, "next", bindPause, "attempts", max(c.Quorum.BindTries, 0)) // 0: unlimited, as in electionPortBindRetry
		}
		timer := time.NewTimer(bindPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, errors.Join(err, ctx.Err())
		}
	}
}

// unresolved reports whether the host name in an address didn't resolve. The name of a
// port, which Go looks up as tcp/name, doesn't resolve later.
func unresolved(err error) bool {
	var lookup *net.DNSError
	return errors.As(err, &lookup) && !strings.HasPrefix(lookup.Name, "tcp/")
}
