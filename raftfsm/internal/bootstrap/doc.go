// Package bootstrap forms an ensemble, and brings a server without Raft state into it.
//
// A Formation asks the other servers on the list what they are (Probe), agrees with them on
// one Plan, and carries it out or waits for an Admission. Store keeps what a server has
// promised and accepted.
//
// Invariants:
//   - The servers of one list never form two ensembles, whatever stops and whatever is lost
//     on the way (ballot.go has the proof).
//   - A promise, an acceptance and a disk number are on disk before another server learns of
//     them.
//   - A member of an ensemble neither promises nor accepts.
//   - A server that asks learns the id of the ensemble and the disks only after it has proved
//     that it belongs to the ensemble (trusts). Its Probe is bounded (Check).
//
// May import: raftfsm/internal/membership and exchange, internal/quorum, internal/vfs,
// hashicorp/raft for its types, the standard library.
package bootstrap
