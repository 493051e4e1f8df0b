// Package limits bounds what clients can cost a server: memory ([Memory], [Large] requests,
// the [Excess] of connections), requests in process ([Slots]), the rate of new sessions
// ([SessionThrottle]), sessions without a connection ([LostSessions]), clients that hardly
// read ([Progress]), lists that operators' commands return ([LongAnswers]), and lines of the
// log ([Complaints]).
//
// The package imports only the standard library and doesn't depend on connections or
// requests: it decides, and the server acts. The server also passes the time, so that tests
// can set it.
//
// Invariants:
//   - No call blocks, except [LongAnswers.Begin] and [Memory.Watch].
//   - A type that several goroutines use has its own lock. It doesn't hold the lock during
//     calls into the server, except for cut, which must not block.
package limits
