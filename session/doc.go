// Package session keeps ZooKeeper sessions: the replicated [Table] that every
// server holds, and the rule that says when a session is alive (liveness.go), with
// the leader's [Deadlines], what a [Member] reports, and the [Signs] of life of one
// client.
//
// It imports proto and the standard library only. It has no connections and no
// clock. Only log entries change the table, so it is the same on every server.
// Everything that depends on the time gets it from its caller.
//
// Invariants:
//   - An id is never reused, whatever clocks or restarts do.
//   - A session's generation rises with every attach. Commands carry the
//     generation of their connection, so that a late command from an abandoned
//     connection has no effect after the client has attached elsewhere.
//   - A deadline is never earlier than the session's timeout after the last sign
//     of life.
package session
