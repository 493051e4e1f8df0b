// Package apply is the state machine: it applies the entries of the log to the tree of znodes,
// the table of sessions and the membership.
//
// Machine applies entries (machine.go, commands.go, config.go). It captures its State for
// a snapshot (snapshot.go), and installs the snapshot of another server (install.go). A
// state that arrives in pieces through the log also replaces it (statetransfer.go).
// Digests of the State tell whether servers have diverged (digest.go).
//
// Invariants:
//   - The State is a function of the log alone: applying an entry reads no configuration, no
//     clock, no randomness. The Environment only determines which goroutines and
//     clients of this server are notified.
//   - An entry that can't be decoded or applied stops the machine. It is never skipped.
//   - While it holds the tree's lock, the machine calls only Handler.Applied,
//     Handler.Jumped and functions of its Environment that don't block.
//
// May import: proto, tree, session, raftfsm/internal/command, membership, propose and snapio,
// internal/histogram, hashicorp/raft, the standard library.
package apply
