// Package datadir identifies the owner of the state in a server's directories, and replaces that
// state.
//
// Identity names the owner. Identify checks it when a server starts, and lets a standalone
// server become a member of an ensemble. Swap exchanges the whole state, for a recovery, an
// import or a server that joins again. ReadPlace and Replay look at the directories of a
// stopped server.
//
// Invariants:
//   - A server never starts with another server's state, with a part of a state, or empty
//     although it had a state.
//   - A stop at any moment leaves either the old or the new state; the next process that
//     opens the directories finishes a Swap.
//   - A process changes a directory only while it holds the lock.
//
// May import: raftfsm/internal/bootstrap, command and membership, internal/raftlog,
// internal/vfs, hashicorp/raft for its types and its log, the standard library.
package datadir
