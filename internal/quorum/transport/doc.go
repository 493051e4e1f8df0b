// Package transport carries Raft's messages between the servers of an ensemble, over the
// streams of package quorum: Transport is the raft.Transport of one Raft instance.
//
// It also decides what Raft itself doesn't know: when a leader that can't write or
// replicate gives way, and when a server starts an election.
//
// Invariants:
//   - Raft sees no message that a correct server doesn't send (checker, package rpc).
//   - Raft handles the messages of other servers one at a time (relay).
//   - We send early or again only requests that Raft asks for (pusher, replication).
//   - Nothing runs after Close (instance).
//
// It imports quorum, rpc, hashicorp/raft, go-hclog and the standard library.
package transport
