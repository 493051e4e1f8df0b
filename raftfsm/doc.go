// Package raftfsm is the replicated state machine: it orders the commands of
// all servers in one Raft log and applies that log to the tree of znodes and
// the table of sessions. It is the only package that uses the Raft library,
// and the only writer of the tree and the table.
//
// The life of a command: [Node.Propose] encodes it once, with a copy of the
// client's bytes, into the run that its server is building (propose.LocalRuns). The
// leader's propose.Proposer packs the waiting runs into one batch and one Raft
// entry. Every server applies the entry (apply.Machine): session
// check, transaction, [Handler].Applied, all under the tree's lock. The server
// that proposed the command finds its waiter by (boot nonce, sequence number);
// the leader sends no reply.
//
// Invariants:
//   - The state is a function of the log alone: apply reads no configuration,
//     no clock, no randomness. Each batch carries time and policy, and each
//     LeaderStart the leader's identity.
//   - A batch counts only if it is the next batch of the incarnation that the
//     newest LeaderStart started; any other batch is skipped as a whole. So a batch
//     that Raft refused leaves no gap, and a batch of a deposed leader changes
//     nothing.
//   - A transaction gets its zxid when it is applied, never before: every zxid
//     is part of a committed prefix.
//   - An entry that can't be decoded stops the server. It is never skipped.
//   - While the tree's lock is held, we call only Handler.Applied and Handler.Jumped, and
//     acquire no lock that another goroutine may hold while it waits.
//
// A Node has a controller, which owns the leadership and runs on the one control goroutine
// (lead.go), a replica.Replica, which has the stores, Raft and the state machine, and peers:
// alone for a standalone server (standalone.go), ensemble.Ensemble for a member (peers.go).
//
// Packages of raftfsm/internal implement the rest: command the layout of the log, propose
// and forward the path of commands into it, apply the state machine, snapio the stream of
// a snapshot, replica the stores with Raft and the state machine on them, bootstrap the
// formation of an ensemble, ensemble the communication of a member with the other
// servers, membership the list of servers, exchange questions between servers, multiaddr
// servers with several addresses, datadir the owner of a directory and the replacement of
// its state, restore the replacement of the state while the ensemble serves, logreader
// the files of a stopped server.
//
// May import: its own internal packages, proto, tree, session, internal/raftlog,
// storage, internal/quorum and its transport, hashicorp/raft, the standard library.
package raftfsm
