// Package gozk lets the recipes run over a *zk.Conn of
// github.com/go-zookeeper/zk, for programs that use that client already.
//
//	d := gozk.NewDialer(nil)
//	c, events, err := zk.Connect(servers, 10*time.Second, zk.WithDialer(d.Dial))
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	mutex := lock.NewMutex(gozk.On(c, events, d), "/locks/stock")
//
// The [Dialer] is there because a *zk.Conn does not tell what it knows: the
// session timeout that the server has granted, by which a lock's Lease ends in
// time, stands only in the handshake, and the channel of events drops some when it
// is full. On reads the channel from then on; who wants the events as well uses
// zk.WithEventCallback.
//
// # What is as with our own client
//
// Operations are done in one session: before and after each the id of the session
// is looked at, and what was done in a session that follows is reported as
// [client.ErrSessionExpired]. Errors match the codes of package client, and writes
// without an answer [client.ErrUnknownOutcome]. A Hold counts from the sending of
// the last sync that was answered; while there is one, the package sends such a
// sync every third of the session's timeout, since the pings of a *zk.Conn are
// seen by nobody.
//
// # What a *zk.Conn cannot do
//
//   - It has no removeWatches. A watch that was removed stays at the server, and
//     in the *zk.Conn, until it fires or the session ends. To keep that small it is
//     used again when the same watch is wanted anew.
//   - It has no contexts. A call that was given up goes on until it is answered or
//     its connection breaks.
//   - It keeps requests that could not be written when a connection broke, and
//     writes them on the next one, even if a new session has begun there. They are
//     reported as of unknown outcome in the session that ended; an ephemeral znode
//     that came to be so is deleted again. If the answer to that is lost too it
//     stays until that session ends.
//   - It does not know that its session has expired before a server has told it:
//     without a connection operations wait for one. A Hold ends in time.
//   - [recipes.LostOnExpiry] ends no sooner than a server has said so.
//
// # Rules
//
// It imports client for its errors and types, recipes, and go-zookeeper; it is the
// only package that does.
package gozk
