// Package ensemble connects a server with the other servers of its ensemble: it joins them,
// follows their leader or leads them, and changes their membership.
//
// An Ensemble works on an Environment, its only access to the server that it belongs to.
// Its parts are in separate files: the addresses of the servers (where.go, security.go),
// the list of the configuration file (filelist.go), the membership and the steps of
// Raft's configuration towards it (reconcile.go, carryout.go, reconfig.go, levels.go),
// the servers that join (join.go), the freshness of this server's state (freshness.go,
// liveness.go, barrier.go), the leader to follow and how long to wait for it (forward.go,
// patience.go, publish.go), and the log messages of a waiting server (waiting.go). All
// parts share a base (base.go).
//
// Invariants:
//   - A part knows the parts before it, never those after it (Ensemble lists them in order).
//   - While base.mu is held, we call no function that waits or acquires another lock.
//   - We publish a status and change the leadership on the control goroutine only
//     (Environment.Do).
//   - Raft's configuration changes one server at a time, and only on the leader's reconcile
//     loop. The next leader finishes or undoes an interrupted change from the membership alone.
//   - A server gives an old leader up after a bound that follows from syncLimit × tickTime, and
//     counts only the time during which it was awake itself.
//   - A server that joins learns the id of the ensemble only at an address that the members
//     already have for it.
//
// May import: raftfsm/internal/apply, bootstrap, command, datadir, exchange, forward,
// membership, multiaddr and propose, internal/quorum and its transport, internal/raftlog,
// internal/histogram, proto, session, tree, hashicorp/raft and go-hclog, the standard library.
package ensemble
