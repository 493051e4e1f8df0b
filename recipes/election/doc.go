// Package election chooses one leader among candidates.
//
//	e := election.New(recipes.On(c), "/scheduler", []byte("host-7"))
//	err := e.Run(ctx, func(ctx context.Context, term *election.Term) error {
//		… lead, until ctx ends …
//	})
//
// [Election] is for who wants to lead and has something to do then: Campaign and
// Run. [Latch] stays a candidate in the background and can be asked. Observe tells
// everybody else who leads.
//
// # Rules
//
// It imports recipes/lock, recipes and client. A leader is who holds a
// [lock.Mutex]: everything that a [lock.Lease] promises about exclusion holds for a
// [Term], above all that it ends before another can begin, and that its token grows
// from term to term. The layout is that of Curator's LeaderSelector and, for Latch,
// LeaderLatch.
package election
