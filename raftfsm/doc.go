// Package raftfsm is the replicated state machine: it orders the commands of
// all servers in one Raft log and applies that log to the tree of znodes and
// the table of sessions. It is the only package that knows the Raft library,
// and the only writer of both.
//
// The life of a command: [Node.Propose] encodes it once, behind the client's
// own bytes, into the run that its server is building (intake.go). The leader's
// proposer packs the runs that wait into one batch and one Raft entry
// (proposer.go). Every server applies the entry (fsm.go, apply.go): session
// check, transaction, [Handler].Applied, all under the tree's lock. The server
// that proposed the command finds its waiter again by (boot nonce, sequence
// number); there is no reply leg.
//
// Invariants:
//   - The state is a function of the log alone: apply reads no configuration,
//     no clock, no randomness. Time and policy come with the batch, the leader's
//     identity with its LeaderStart.
//   - A batch counts only if it is the next one of the incarnation that the
//     newest LeaderStart began; any other is skipped whole. So a batch that
//     Raft refused leaves no hole, and one that a deposed leader left behind
//     changes nothing.
//   - A zxid is given when a transaction is applied, never before: no zxid
//     exists that is not part of a committed prefix.
//   - Whatever cannot be decoded stops the server. It is never skipped.
//   - Nothing is called with the tree's lock held but Handler.Applied and
//     Handler.Jumped; no lock is taken under it that is ever held while waiting.
//
// May import: proto, tree, session, internal/raftlog, internal/quorum,
// hashicorp/raft and go-hclog, the standard library.
package raftfsm
