// Package bootstrap forms an ensemble, and brings a server without Raft state into it.
//
// A Formation asks the other servers on the list for their state (Probe), agrees on a
// Plan with the other voters, and carries it out or waits for an Admission. Store keeps a
// server's promises and accepted plans.
//
// Invariants:
//   - The servers of one list never form two ensembles, whatever stops and whatever is lost
//     on the way (ballot.go has the proof).
//   - A promise, an acceptance and a disk number are on disk before another server learns
//     them.
//   - A member of an ensemble neither promises nor accepts.
//   - A server that asks learns the id of the ensemble and the disks only after it has proved
//     that it belongs to the ensemble (trusts). Its Probe is bounded (Check).
//
// May import: raftfsm/internal/membership and exchange, internal/quorum, internal/vfs,
// hashicorp/raft for its types, the standard library.
package bootstrap
