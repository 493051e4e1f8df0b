// Package gozk runs the recipes on a *zk.Conn of github.com/go-zookeeper/zk, for
// programs that already use that client.
//
//	d := gozk.NewDialer(nil)
//	c, events, err := zk.Connect(servers, 10*time.Second, zk.WithDialer(d.Dial))
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	mutex := lock.NewMutex(gozk.On(c, events, d), "/locks/stock")
//
// We need the [Dialer] because a *zk.Conn does not expose the session timeout that the
// server has granted. A lock's Lease needs it in order to end in time, and we can only read
// it from the handshake. On reads the channel of events; a program that also needs the
// events should use zk.WithEventCallback.
//
// # What works as with zkgo's client
//
// Operations run in one session: we check the session id before and after each operation,
// and report an operation that ran in a later session as [client.ErrSessionExpired]. Errors
// match the codes of package client, and a write without a reply matches
// [client.ErrUnknownOutcome]. A Hold counts from the time when we sent the last sync that
// got a reply. While there is a Hold, we send a sync every third of the session's timeout,
// because we can't observe the pings of a *zk.Conn.
//
// # Limitations of a *zk.Conn
//
//   - It has no removeWatches. A removed watch stays on the server, and in the *zk.Conn,
//     until it fires or the session ends. To limit the number of such watches, we reuse one
//     when the same watch is requested again.
//   - It has no contexts. An abandoned call continues until the server replies or the
//     connection breaks.
//   - It keeps requests that could not be sent when a connection broke, and sends them on
//     the next one, even if a new session has begun there. We report their outcome as
//     unknown in the session that ended, and delete an ephemeral znode that was created
//     this way. If the reply to that delete is lost, too, the znode stays until the new
//     session ends.
//   - It does not know that its session has expired before a server has told it: without a
//     connection, operations wait for one. A Hold still ends in time.
//   - [recipes.LostOnExpiry] reports the loss only when a server has reported the expiry.
//
// # Rules
//
// The package imports client for its errors and types, recipes, and go-zookeeper. No
// other package of this module imports go-zookeeper, except in tests.
package gozk
