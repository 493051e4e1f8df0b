// Package lock provides distributed locks. Each lock is a line of ephemeral sequential
// znodes in a directory. The client with the lowest number holds the lock, and every other
// client watches only one znode: the one that must be deleted before the client may become
// the holder.
//
//	m := lock.NewMutex(recipes.On(c), "/locks/stock")
//	lease, err := m.Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer lease.Release(ctx)
//	… work, until lease.Done() is closed …
//
// # Leases
//
// No lock service can promise that a process that was suspended for a minute still holds
// its lock when it resumes. Therefore we return a [Lease] for an acquired lock. Done is
// closed before any other client can hold the lock (provided that clocks run at about the
// same speed, see [client.Lease]). Token is a number that grows from holder to holder, so
// that a data store can refuse late writes of an earlier holder. Multi writes znodes only
// while the lock is held, and we let the server check that.
//
// # Rules
//
// The package imports recipes and client. Invariants:
//
//   - We grant a lock only after we have read that its znode is first in line and belongs
//     to the current session, and while the leader's last confirmation of that session is
//     recent enough to rule out that the session has ended.
//   - An Acquire that ends without a Lease (after an error, the end of its context, or a
//     lost reply) leaves no znode that could block a successor. If we can't delete
//     the znode immediately, we delete it in the background, or it disappears with the
//     session.
//   - Waiters remove their watches.
//   - We use the layout of znodes, names and data of Apache Curator or, as an option, of
//     Kazoo, so that programs in other languages can use the same lock.
package lock
