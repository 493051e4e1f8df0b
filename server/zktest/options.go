package zktest

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/zkgo/zkgo/server"
)

// Option changes how a Server or a Cluster runs.
type Option func(*options)

// options are the settings of all Options.
type options struct {
	configure []func(*server.Config)
	logs      bool // immediately instead of only on failure
	onDisk    bool
	record    bool   // record the conversation for the log of a failed test
	silent    bool   // connected clients don't count as pinging
	addr      string // host:port of the first server; "": any free port of 127.0.0.1
}

func newOptions(opts []Option) options {
	var o options
	for _, f := range opts {
		f(&o)
	}
	return o
}

// WithConfig changes the server's configuration: ACLs and super users, quotas, four-letter
// words, TLS and any other setting of the real server. In a cluster we call f for every
// member. It must not change the fields that define the server's identity and the location
// of its data: ID, Members, Network, Memory, DataDir, LogDir, Now, Logger and Interceptor.
func WithConfig(change func(*server.Config)) Option {
	return func(o *options) { o.configure = append(o.configure, change) }
}

// WithTick sets the tick, 2 seconds by default. Session timeouts are negotiated
// between 2 and 20 ticks, and a session expires up to one tick after its timeout.
func WithTick(tick time.Duration) Option {
	return WithConfig(func(c *server.Config) { c.TickTime = tick })
}

// WithLogs writes the server's log to the test's log immediately. By default, the log is
// shown only when the test fails.
func WithLogs() Option { return func(o *options) { o.logs = true } }

// WithAddr makes Addrs listen at host:port, for clients with a fixed address, e.g.
// "127.0.0.1:2181". Port 0 is any free port. In a cluster, the member with id n listens on
// port+n−1. With the host 0.0.0.0, clients on other hosts can connect. Tests that use a
// fixed port should not run in parallel.
func WithAddr(addr string) Option { return func(o *options) { o.addr = addr } }

// listenAddr returns the address where the server with this id listens.
func (o *options) listenAddr(id int) (string, error) {
	if o.addr == "" {
		return "127.0.0.1:0", nil
	}
	host, text, err := net.SplitHostPort(o.addr)
	if err != nil {
		return "", fmt.Errorf("WithAddr: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return "", fmt.Errorf("WithAddr(%q): the port is not a number", o.addr)
	}
	if port != 0 {
		port += id - 1
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// WithoutPings makes Advance count a client as alive only if the client itself has
// sent something, as on a production server.
func WithoutPings() Option { return func(o *options) { o.silent = true } }

// OnDisk keeps the data in the test's temporary directory, so that a member of a cluster has
// its data again after Restart. By default, the member starts empty and gets its data from
// the other members.
func OnDisk() Option { return func(o *options) { o.onDisk = true } }

// WithConversation writes the requests and replies between clients and server to the
// log of a failed test, in the format of Server.Record.
func WithConversation() Option { return func(o *options) { o.record = true } }

// TB is the part of testing.TB that Run needs. It is a separate interface so that a program
// can run a test server without importing package testing. Fatal and Fatalf must not return.
type TB interface {
	Cleanup(f func())
	Errorf(format string, args ...any)
	Failed() bool
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Helper()
	Logf(format string, args ...any)
	TempDir() string
}
