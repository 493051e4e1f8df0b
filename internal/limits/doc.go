// Package limits bounds what clients can cost a server: memory ([Memory], [Large] requests,
// the [Excess] of what connections hold), requests in process ([Slots]), the rate of new
// sessions ([SessionThrottle]), sessions without a connection ([LostSessions]), clients that
// hardly read ([Progress]), lists that operators' commands return ([LongAnswers]), and lines
// of the log ([Complaints]).
//
// The package imports only the standard library. It knows neither connections nor requests:
// the server asks before it acts, and acts itself. The server also passes the time, so that
// tests can set it.
//
// Invariants:
//   - No call blocks, except [LongAnswers.Begin] and [Memory.Watch].
//   - A type that several goroutines use has its own lock and holds it for no call into the
//     server except cut, which must not block.
package limits
