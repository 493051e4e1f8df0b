// Package lock provides distributed locks. Each lock is a line of ephemeral
// sequential znodes in a directory. The client whose znode has the lowest number
// holds the lock, and every other client watches only the one znode whose deletion
// may make it the holder.
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
// No lock service can promise that a process that was suspended for a minute still
// holds its lock when it resumes. So an acquired lock is a [Lease]. Done is closed
// before any other client can hold the lock (provided that clocks run at about the
// same speed, see [client.Lease]). Token is a number that grows from holder to
// holder, so that a data store can refuse late writes of an earlier holder. Multi
// writes znodes only while the lock is held, which the server checks.
//
// # Rules
//
// The package imports recipes and client. Invariants:
//
//   - A lock is granted only after its znode was seen to be first in line and to
//     belong to the current session, and while the leader's last confirmation of that
//     session is recent enough to rule out that the session has ended.
//   - An Acquire that ends without a Lease (after an error, the end of its context,
//     or a lost reply) leaves no znode behind that could block a successor. A znode
//     that can't be deleted immediately is deleted in the background, or ends with
//     the session.
//   - Waiters leave no watches behind.
//   - The layout of znodes, names and data is Apache Curator's or, as an option,
//     Kazoo's, so that programs in other languages can use the same lock.
package lock
