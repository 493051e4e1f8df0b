// Package partition distributes a set of items, e.g. shards, queues or tenants, among
// the members of a party, so that each item belongs to one member at any time.
//
//	p := partition.New(recipes.On(c), "/shards", "worker-7", []string{"s1", "s2", "s3"})
//	err := p.Run(ctx, func(ctx context.Context, share partition.Share) error {
//		… work on share.Items until ctx ends, then return …
//	})
//
// # How it works
//
// Every member keeps a znode in the directory party and computes its share from the
// sorted list of the members. When that list has not changed for the quiet time, the
// member acquires the lock of each item of its share, and works. When the list
// changes, every member is told to finish and releases its locks, and the members
// compute new shares.
//
// # Rules
//
// The package imports recipes/lock, recipes/node, recipes and client. Invariants:
//
//   - Members may temporarily disagree about who is in the party. Only an item's lock
//     keeps two members from working on the item: a member is given an item only
//     while it holds the item's [lock.Lease], and is told to finish before any other
//     client can hold that lock.
//   - A share is held completely or not at all. If one of its locks may be lost, the
//     member gives up the whole share, and releases the other locks when the work has
//     returned.
//   - The layout and the shares are those of Kazoo's SetPartitioner: party is its
//     ShallowParty, and the znodes below locks are its Locks. Programs in Python and
//     in Go can share one set.
package partition
