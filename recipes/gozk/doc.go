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
// The [Dialer] is needed because a *zk.Conn does not expose two things. The session
// timeout that the server has granted, which a lock's Lease needs in order to end in
// time, is only in the handshake, and the channel of events drops events when it is
// full. On reads the channel; a program that also needs the events should use
// zk.WithEventCallback.
//
// # What works as with zkgo's client
//
// Operations are done in one session: the package checks the session id before and
// after each operation, and reports an operation that was done in a later session as
// [client.ErrSessionExpired]. Errors match the codes of package client, and writes
// whose reply was lost match [client.ErrUnknownOutcome]. A Hold counts from the
// moment when the last answered sync was sent. While there is a Hold, the package
// sends such a sync every third of the session's timeout, because the pings of a
// *zk.Conn can't be observed.
//
// # Limitations of a *zk.Conn
//
//   - It has no removeWatches. A removed watch stays on the server, and in the
//     *zk.Conn, until it fires or the session ends. To limit the number of such
//     watches, the package reuses one when the same watch is requested again.
//   - It has no contexts. An abandoned call continues until it is answered or its
//     connection breaks.
//   - It keeps requests that could not be sent when a connection broke, and sends
//     them on the next one, even if a new session has begun there. The package
//     reports them as of unknown outcome in the session that ended, and deletes an
//     ephemeral znode that was created this way. If the reply to that delete is lost,
//     too, the znode stays until the new session ends.
//   - It does not know that its session has expired before a server has told it:
//     without a connection, operations wait for one. A Hold ends in time.
//   - [recipes.LostOnExpiry] takes effect only when a server has reported the expiry.
//
// # Rules
//
// The package imports client for its errors and types, recipes, and go-zookeeper. No
// other package of this module imports go-zookeeper, except in tests.
package gozk
