// Package command defines the entries of the Raft log: their layout, and the commands in
// them.
//
// The package also defines how the outcome of a command reaches its Waiter.
//
// An entry is either a LeaderStart, which starts a leadership, or a batch of runs. A run
// has consecutive commands of one server, numbered since that server's boot.
//
// Invariants:
//   - The layout is part of the format on disk and between servers: a change of the
//     layout needs a new Format, and a change of the effect of an entry needs a new
//     Level.
//   - An entry that Checker accepts can be decoded and applied by every server of the same
//     Level. We keep everything else out of the log, because a server stops at an entry
//     that it can't decode.
//   - Decoding aliases the entry. Encoding a command copies the client's bytes once.
//
// May import: proto, tree, session, the standard library.
package command
