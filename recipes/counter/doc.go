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
//   - Every change names the version that it replaces, so no change is lost; locks
//     only make changes fairer.
//   - A change whose reply was lost is retried if the znode has not changed since. If
//     it has changed, that may have been this change or another client's: the number
//     has no room for a mark, so the error says [client.ErrUnknownOutcome].
//   - The znodes are Curator's: 8 or 4 bytes, big-endian.
package counter
