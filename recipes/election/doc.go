// Package election elects one leader among candidates.
//
//	e := election.New(recipes.On(c), "/scheduler", []byte("host-7"))
//	err := e.Run(ctx, func(ctx context.Context, term *election.Term) error {
//		… lead, until ctx ends …
//	})
//
// Use [Election], with Campaign and Run, if the leader has work to do. [Latch] campaigns in
// the background, and you can ask it whether it leads. Observe shows other clients which
// candidate leads.
//
// # Rules
//
// The package imports recipes/lock, recipes and client. The leader is the holder of a
// [lock.Mutex], so a [Term] has the same guarantees about exclusion as a [lock.Lease]: in
// particular, a term ends before another can begin, and the token grows from term to term.
// We use the layout of Curator's LeaderSelector and, for Latch, LeaderLatch.
package election
