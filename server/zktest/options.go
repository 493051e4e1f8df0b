package zktest

import (
	"time"

	"github.com/zkgo/zkgo/server"
)

// Option changes how a Server or a Cluster runs.
type Option func(*options)

// options is what the Options set.
type options struct {
	configure []func(*server.Config)
	logs      bool // as they come, not on failure only
	onDisk    bool
	record    bool // the conversation, for the log of a test that fails
	silent    bool // connected clients do not count as pinging
	port      int  // of the first server; 0: any that is free
}

func newOptions(opts []Option) options {
	var o options
	for _, f := range opts {
		f(&o)
	}
	return o
}

// WithConfig changes the server's configuration: ACLs and super users, quotas,
// four-letter words, TLS and whatever else the real server can do. In a cluster
// it is called for every member. It must leave the fields alone that say who
// the server is and where its data are: ID, Members, Network, Memory, DataDir,
// LogDir, Now, Logger and Interceptor.
func WithConfig(change func(*server.Config)) Option {
	return func(o *options) { o.configure = append(o.configure, change) }
}

// WithTick sets the tick, 2 seconds by default. Session timeouts are negotiated
// between 2 and 20 ticks, and a session ends up to one tick after its timeout.
func WithTick(tick time.Duration) Option {
	return WithConfig(func(c *server.Config) { c.TickTime = tick })
}

// WithLogs writes the server's log to the test's as it comes. Without it the
// log is shown only when the test fails.
func WithLogs() Option { return func(o *options) { o.logs = true } }

// WithPort has Addrs open a certain port, of the member of a cluster with the id
// n the one n−1 above it, for clients whose address cannot be changed. Tests
// with it cannot run at the same time.
func WithPort(port int) Option { return func(o *options) { o.port = port } }

// WithoutPings makes Advance count a client as alive only when it has said
// something itself, as on a server that nobody tests.
func WithoutPings() Option { return func(o *options) { o.silent = true } }

// OnDisk keeps the data in the test's temporary directory, so that a member of
// a cluster has them again after Restart. Otherwise it comes back empty and
// gets them from the others.
func OnDisk() Option { return func(o *options) { o.onDisk = true } }

// WithConversation writes what clients and server said to one another to the
// log of a test that fails, as Server.Record shows it.
func WithConversation() Option { return func(o *options) { o.record = true } }
