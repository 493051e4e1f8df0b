// Package client is a ZooKeeper client: for zkgo and for Apache ZooKeeper 3.5 to
// 3.9 alike.
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
// A Client keeps one session, over one connection at a time, and reconnects by
// itself. An operation takes a context, which is its only time limit: while there
// is no connection it waits for one. All methods may be called concurrently;
// requests of many goroutines share the connection without waiting for one
// another's answers.
//
// When the connection breaks, the operations that were sent on it end with
// [ErrConnectionLoss]; those that were not sent wait for the next connection.
// Reads are repeated as the [RetryPolicy] says. A write is not, because it may
// have been done: its error matches [ErrUnknownOutcome]. See [Protected],
// [Guaranteed] and [Idempotent] for what can be done about that.
//
// When the session ends, operations under way end with [ErrSessionExpired], and
// so do the watches. The end is noticed also while there is no connection: at the
// session's timeout after the sending of the last request that was answered.
// Another session begins by itself. A program that has to know reads the states
// of [Client.Subscribe]; one that must not do anything any more once its session
// may be over takes a [Lease]; [Client.InSession] binds operations to a session.
//
// # Watches
//
// Events and replies come in the server's order: when an operation returns, all
// events that the server sent before its reply are already in their channels.
// So nobody reads a newer state of a znode before the event that announces it
// can be received. Watches are set again on every reconnect.
//
// # Imports
//
// It imports proto and the standard library, and nothing of the server, so that
// it works against any ZooKeeper and adds nothing to a program.
//
// It uses goroutines: two that keep the session, and two for each connection.
// Close waits for them.
package client
