// Package replica is a server's copy of the state: the stores in its directories, the Raft
// instance on them, and the state machine. It knows no other server and no client.
//
// A server opens its Replica, starts Raft on it with the transport to the other servers,
// or without a transport (StartAlone), and stops it. Recover, Seed and Restore replace
// the state of a stopped server by the start of a new history; Survey and Load only read
// it.
//
// Invariants:
//   - The stores are opened before Raft starts, and closed after it has ended, except when they
//     failed: then Raft's goroutines end only because the stores are closed.
//   - Raft starts on the state of the newest snapshot (apply.Machine.Align), and never falls
//     back to an older one.
//   - The first configuration is written once in the life of a log.
//   - A directory is replaced as a whole or not at all (datadir.Swap).
//
// May import: tree, session, storage, internal/histogram and raftlog, raftfsm/internal/apply,
// command, datadir, membership and propose, hashicorp/raft and go-hclog, the standard library.
package replica
