// Package session implements ZooKeeper sessions: the [Table] that is replicated to every
// server, and the rule that decides when a session is alive (liveness.go). The rule has
// three parts: the leader's [Deadlines], the reports of a [Member], and the [Signs] of
// life of one client.
//
// The package imports only proto and the standard library. It has no connections and no
// clock. Only log entries change the table, so it is the same on every server. Everything
// that depends on the time gets it from its caller.
//
// Invariants:
//   - No id is reused, whatever clocks or restarts do.
//   - A session's generation rises with every attach. Commands carry the
//     generation of their connection, so that a late command from an abandoned
//     connection has no effect after the client has attached elsewhere.
//   - No session expires before its full timeout has passed since the last sign of life.
package session
