// Package restore replaces the state of an ensemble while it serves, through its log.
//
// Restores proposes the new state in pieces, as commands of this server. The state
// machine collects the pieces and puts them in force at once (see
// raftfsm/internal/apply/statetransfer.go).
//
// Invariants:
//   - A restore has no effect before its last piece is in flight. After that the outcome
//     comes from the log, or is unknown.
//   - Each command depends on the one before it (Command.Way), so if a piece is lost, the
//     commit has no effect.
//   - At most piecesAhead pieces are in flight, so the writes of clients wait only for those.
//
// May import: proto, tree, session, raftfsm/internal/apply, command and propose, the standard
// library.
package restore
