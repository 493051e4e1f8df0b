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
// A Client keeps one session over one connection at a time, and reconnects by itself.
// An operation takes a context, which is its only time limit: without a connection,
// the operation waits for one. All methods may be called concurrently. Requests of
// many goroutines share the connection, and none waits for the reply to another.
//
// When the connection breaks, the operations that were sent on it end with
// [ErrConnectionLoss]; those that were not sent wait for the next connection. The
// Client repeats reads as the [RetryPolicy] says. It doesn't repeat a write, because
// the server may have executed it: the error of the write matches
// [ErrUnknownOutcome]. [Protected], [Guaranteed] and [Idempotent] are ways to deal
// with that.
//
// When the session ends, pending operations and the watches end with
// [ErrSessionExpired]. The Client notices the end even without a connection: the
// session counts as lost when its timeout has elapsed since the Client sent the last
// request that was answered. The Client then begins another session by itself. A
// program that needs to know should read the states from [Client.Subscribe]. A
// program that must not act after its session may have ended should take a [Lease].
// [Client.InSession] binds operations to a session.
//
// # Watches
//
// Events and replies arrive in the server's order: when an operation returns, all
// events that the server sent before its reply are already in their channels. So no
// caller can read a newer state of a znode before it can receive the event that
// announces it. The Client sets watches again after every reconnect.
//
// # Imports
//
// The package imports proto and the standard library, and nothing of the server, so
// it works with any ZooKeeper server and adds no other dependencies to a program.
//
// It uses goroutines: two for the session, and two for each connection. Close waits
// for them.
package client
