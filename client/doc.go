// Package client is a ZooKeeper client. It works with zkgo and with Apache ZooKeeper
// 3.5 to 3.9.
//
//	c, err := client.Connect(ctx, "zk1:2181,zk2:2181,zk3:2181/app")
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	path, err := c.Create(ctx, "/workers/w-", data, client.Ephemeral, client.Sequential)
//
// # Connection, session, errors
//
// A Client keeps one session over one connection at a time, and reconnects by itself. The
// context is an operation's only time limit: without a connection, the operation waits for
// one. All methods are safe for concurrent use. Requests of many goroutines are pipelined
// on the connection, i.e. no request waits for the reply to another.
//
// When the connection breaks, the operations that were sent on it end with
// [ErrConnectionLoss]; unsent operations wait for the next connection. The Client repeats
// reads according to the [RetryPolicy]. It doesn't repeat a write, because the server may
// have executed it: the error of the write matches [ErrUnknownOutcome]. [Protected],
// [Guaranteed] and [Idempotent] help with this.
//
// When the session ends, pending operations and the watches end with [ErrSessionExpired].
// The Client notices the end even without a connection: the session counts as lost when its
// timeout has elapsed since the Client sent the last request that was answered. The Client
// then begins another session by itself. A program that needs to know should read the states
// from [Client.Subscribe]. A program that must stop acting when its session may have ended
// (e.g. a lock holder) should acquire a [Lease]. [Client.InSession] binds operations to a
// session.
//
// # Watches
//
// Events and replies arrive in the server's order: when an operation returns, all events
// that the server sent before its reply are already in their channels. As a result, a
// caller never reads a newer state of a znode before the event that announces it is
// available. The Client sets watches again after every reconnect.
//
// # Imports
//
// The package imports only proto and the standard library. It doesn't depend on our server,
// so it works with any ZooKeeper server and adds no other dependencies to your program.
//
// A Client runs two goroutines for the session and two for each connection. Close waits for
// them.
package client
