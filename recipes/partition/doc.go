// Package partition distributes a set of items, e.g. shards, queues or tenants, among the
// members of a party, so that each item belongs to at most one member at any time.
//
//	p := partition.New(recipes.On(c), "/shards", "worker-7", []string{"s1", "s2", "s3"})
//	err := p.Run(ctx, func(ctx context.Context, share partition.Share) error {
//		… work on share.Items until ctx ends, then return …
//	})
//
// # How it works
//
// Every member keeps a znode in the directory party and computes its share from the sorted
// list of the members. When that list has not changed for the quiet time, the member
// acquires the lock of each item of its share, and works. When the list changes, we tell
// every member to finish and release its locks, and compute new shares.
//
// # Rules
//
// The package imports recipes/lock, recipes/node, recipes and client. Invariants:
//
//   - Members may temporarily disagree about the list of members. We rely on an item's lock
//     alone to keep two members from working on the item: a member gets an item only while
//     it holds the item's [lock.Lease], and must finish before any other client can hold
//     that lock.
//   - A member has a complete share or none. If it may have lost one of the locks, it gives
//     up the whole share, and releases the other locks when the work function has returned.
//   - We use the layout and the shares of Kazoo's SetPartitioner: party is its
//     ShallowParty, and the znodes below locks are its Locks. Programs in Python and in Go
//     can share one set.
package partition
