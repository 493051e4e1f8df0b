// Package forward carries a follower's commands to the leader.
//
// A follower opens one stream to the server that leads in an incarnation. The stream
// starts with the incarnation, followed by the follower's runs:
//
//	stream = incarnation:8 (size:4 run)*
//
// The caller has read the incarnation when it makes a Receiver. For back-pressure the
// leader stops reading while too many commands wait to be proposed. The leader's first
// byte accepts the stream. Its heartbeats follow.
//
// Both sides send a heartbeat every third of the stall limit:
//
//	follower → leader: filler = (fillFlag | n):4 byte*n
//	leader → follower: sign = received:8 holding:1
//
// received counts the bytes of the stream that the leader has read. holding means that
// the leader isn't reading for now, because too many commands wait to be proposed. So the
// follower can tell a waiting stream from a dead one. On a live stream the signs come in
// time, and either all sent bytes have been received, or received grows, or the leader is
// holding. A follower closes a dead stream and opens another.
//
// The first message is a filler of a few packets' size, which the leader must confirm: on
// a network that loses large packets, a stream could be opened but carry no runs.
//
// A server of an earlier release neither sends nor understands heartbeats. The handshake
// (quorum.Identity.Beats) and the leader's first byte tell whether they are supported.
//
// Invariants:
//   - Runs arrive in the order in which they were sent, or the stream ends.
//   - A stream that carries nothing for the stall limit ends at both sides, unless the
//     leader reports holding.
//   - A size that a follower announces allocates no memory before the bytes arrive.
//
// May import: internal/quorum, raftfsm/internal/propose, the standard library.
package forward
