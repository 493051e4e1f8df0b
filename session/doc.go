// Package session keeps ZooKeeper sessions: the replicated [Table] that every
// server holds, and the [Tracker] of deadlines that only a leader keeps.
//
// It imports proto and the standard library only. It knows no connections and
// no clock: the table changes only by what the log says, so that every server's
// is the same, and the tracker is told the time.
//
// Invariants:
//   - An id is never given twice, whatever clocks or restarts do.
//   - A session's generation rises with every attach. Commands carry the
//     generation of the connection they came by, so that what an abandoned
//     connection left behind can never act after the client has moved on.
//   - A deadline never lies earlier than the session's timeout after the last
//     sign of life.
package session
