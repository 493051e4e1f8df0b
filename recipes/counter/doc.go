// Package counter holds numbers and values that many processes change: [Atomic] is
// a number that is added to and compared, [Cached] hands out numbers in blocks,
// [SharedCount] and [SharedValue] are written with versions and watched.
//
//	n := counter.NewLong(recipes.On(c), "/counters/orders")
//	r, err := n.Add(ctx, 1)
//	if errors.Is(err, client.ErrUnknownOutcome) {
//		… it was added or was not …
//	}
//
// # Rules
//
// It imports recipes, recipes/lock and client. Invariants:
//
//   - Every change names the version that it replaces, so none is lost; locks make
//     it only fairer.
//   - A change whose answer was lost is tried again if the znode has not changed
//     since. If it has, that may have been this change or another's: the number has
//     no room for a mark, so the error says [client.ErrUnknownOutcome].
//   - The znodes are Curator's: 8 or 4 bytes, the highest first.
package counter
