// Package propose brings commands into the Raft log: it queues them, packs them into entries,
// and keeps their waiters until they are applied.
//
// Every server has LocalRuns, which packs its commands into runs. On a follower,
// Forwarding sends the runs to the leader, which queues them in RemoteRuns. On the
// leader, Proposer packs the runs of all servers into entries. Backlog wakes the one
// goroutine that sends.
//
// Invariants:
//   - The commands of a server get into the log in the order in which it proposed them.
//     If a command is lost, so are all later commands that depend on it (Command.Way).
//   - After Halt returns, no run leaves a queue.
//   - A Proposer serves one incarnation, and ends with the first entry that Raft refuses or
//     loses.
//   - We limit queues in bytes: LocalRuns makes its clients wait, RemoteRuns only the server
//     that sends too much. Servers share the log fairly by bytes.
//   - While commands wait, the sender is awake, or something that will wake it is in flight.
//
// May import: raftfsm/internal/command, tree, hashicorp/raft for its types, the standard
// library.
package propose
