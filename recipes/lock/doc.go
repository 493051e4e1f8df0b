// Package lock holds distributed locks. Each is a line of ephemeral sequential
// znodes in a directory: whoever's znode has the lowest number holds the lock, and
// everybody else watches just the one znode whose end may be his turn.
//
//	m := lock.NewMutex(recipes.On(c), "/locks/stock")
//	lease, err := m.Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer lease.Release(ctx)
//	… work, until lease.Done() is closed …
//
// # What a Lease says
//
// No lock service can promise that a process which was stopped for a minute still
// holds its lock when it goes on. So an acquired lock is a [Lease]: Done is closed
// before anybody else can hold the lock (as far as clocks run alike, see
// [client.Lease]), Token is a number that grows from holder to holder, for whoever
// guards the data to refuse those who come late, and Multi writes znodes only
// while the lock is held, which the server checks.
//
// # Rules
//
// The package imports recipes and client. Invariants:
//
//   - A lock is granted only after its znode was seen to be first in line and to
//     belong to the current session, and while a leader's last word about that session
//     is recent enough to rule out that it has ended.
//   - Whatever ends an Acquire without a Lease (an error, the context, a lost reply)
//     leaves no znode behind that could block a successor: what cannot be deleted at
//     once is deleted in the background, or ends with the session.
//   - Waiters leave no watch behind.
//   - The layout of znodes, names and data is Apache Curator's, or on demand
//     Kazoo's, so that programs in other languages stand in the same line.
package lock
