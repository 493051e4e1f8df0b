// Package partition shares a set of items among the members of a party, so that
// each item is one member's at any time: shards, queues, tenants.
//
//	p := partition.New(recipes.On(c), "/shards", "worker-7", []string{"s1", "s2", "s3"})
//	err := p.Run(ctx, func(ctx context.Context, share partition.Share) error {
//		… work on share.Items until ctx ends, then return …
//	})
//
// # How it works
//
// Every member keeps a znode in the directory party and computes its share from
// the sorted list of the members. When that list has not changed for the quiet time it
// acquires the lock of each item of its share, and works. When the list changes, every
// member is told to finish, releases its locks, and the next shares are made.
//
// # Rules
//
// It imports recipes/lock, recipes/node, recipes and client. Invariants:
//
//   - Members may disagree for a while about who is in the party. What keeps two
//     from working on one item is its lock and nothing else: a member is told of an
//     item only while it holds the [lock.Lease] of it, and is told to finish before
//     anybody else can hold that lock.
//   - A share is held whole or not at all; if one of its locks may be lost, all of it
//     is given up, and the others are released when the work has returned.
//   - The layout and the shares are those of Kazoo's SetPartitioner: party is its
//     ShallowParty, below locks are its Locks. Programs in Python and in Go share one
//     set.
package partition
