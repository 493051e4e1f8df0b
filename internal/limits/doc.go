// Package limits bounds what clients can cost a server: memory ([Memory], [Large] requests,
// the [Excess] of what connections hold), requests in process ([Slots]), the rate of new
// sessions ([SessionThrottle]), sessions without a connection ([LostSessions]), clients that
// hardly read ([Progress]), lists that operators' commands return ([LongAnswers]), and lines
// of the log ([Complaints]).
//
// It imports the standard library only: it knows neither connections nor requests.
// The server asks before it acts and acts itself. Clocks are the server's, so tests set
// the time.
//
// Invariants:
//   - No call blocks, except [LongAnswers.Begin] and [Memory.Watch].
//   - A type that several goroutines use has its own lock and holds it for no call into the
//     server except cut, which must not block.
package limits
