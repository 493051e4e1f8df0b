// Package limits bounds what clients can cost a server beyond their own connections:
// memory ([Memory]), the rate of new sessions ([SessionThrottle]), lists that operators'
// commands return ([LongAnswers]), and lines of the log ([Complaints]).
//
// The package imports only the standard library. It knows neither connections nor requests:
// the server asks before it acts, and acts itself. The server also passes the time, so that
// tests can set it.
//
// Invariants:
//   - No call blocks, except [LongAnswers.Begin] and [Memory.Watch].
//   - Each type has its own lock. We never call into the server while we hold it, except
//     for cut, which must not block.
package limits
