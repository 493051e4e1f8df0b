// Package limits bounds what clients can cost a server beyond their own connections:
// memory ([Memory]), the rate of new sessions ([SessionThrottle]), lists that operators'
// commands return ([LongAnswers]), and lines of the log ([Complaints]).
//
// It imports the standard library only: it knows neither connections nor requests.
// The server asks before it acts and acts itself. Clocks are the server's, so tests set
// the time.
//
// Invariants:
//   - No call blocks, except [LongAnswers.Begin] and [Memory.Watch].
//   - Each type has its own lock and holds it for no call into the server except cut,
//     which must not block.
package limits
