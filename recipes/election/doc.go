// Package election elects one leader among candidates.
//
//	e := election.New(recipes.On(c), "/scheduler", []byte("host-7"))
//	err := e.Run(ctx, func(ctx context.Context, term *election.Term) error {
//		… lead, until ctx ends …
//	})
//
// [Election] is for a candidate that has something to do as leader: Campaign and Run.
// [Latch] stays a candidate in the background and tells on request whether it leads.
// Observe tells all other clients which candidate leads.
//
// # Rules
//
// The package imports recipes/lock, recipes and client. The leader is the holder of a
// [lock.Mutex], so everything that a [lock.Lease] promises about exclusion also holds
// for a [Term]; in particular, a term ends before another can begin, and its token
// grows from term to term. The layout is that of Curator's LeaderSelector and, for
// Latch, LeaderLatch.
package election
