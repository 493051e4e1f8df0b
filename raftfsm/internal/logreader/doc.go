// Package logreader reads the files that servers leave on disk: snapshots as trees, logs as
// transactions.
//
// It applies the entries of a log to a separate state machine, from the oldest snapshot
// that the log continues.
//
// Invariants:
//   - The package opens no store and changes no file, so it is safe while a server is
//     running.
//   - A transaction has a zxid and a result only if the state before it is known.
//   - Reading stops at the first entry that can't be read. It is never skipped.
//
// May import: proto, session, tree, storage, internal/raftlog, raftfsm/internal/apply, command,
// datadir and membership, hashicorp/raft for its types, the standard library.
package logreader
