// Package counter provides numbers and values that many processes change: [Atomic] is
// a number with atomic operations, [Cached] assigns numbers in blocks, and
// [SharedCount] and [SharedValue] are versioned values that can be watched.
//
//	n := counter.NewLong(recipes.On(c), "/counters/orders")
//	r, err := n.Add(ctx, 1)
//	if errors.Is(err, client.ErrUnknownOutcome) {
//		… it was added or was not …
//	}
//
// # Rules
//
// The package imports recipes, recipes/lock and client. Invariants:
//
//   - Every change names the version that it replaces, so we never lose a change. Locks
//     only make changes fairer.
//   - If the reply to a change was lost, we retry the change if the znode has not changed
//     since. If it has changed, we can't tell whether this change or another client's did
//     it, because the znode has no space for a mark. In that case the error is
//     [client.ErrUnknownOutcome].
//   - The znodes are Curator's: 8 or 4 bytes, big-endian.
package counter
