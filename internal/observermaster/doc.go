// Package observermaster sends the state of a zkgo server, and each transaction after it, to
// observers. It speaks the leader's side of ZooKeeper's learner protocol, like an observer master
// of ZooKeeper (observerMasterPort). Package learner speaks the learner's side.
//
// An observer is a standby in another location, or an ensemble that replaces this one (zkgo
// mirror). It never votes, and nothing waits for it. It receives applied transactions only, and may
// lag.
//
//	observer                        this server
//	OBSERVERINFO                →
//	                            ←   LEADERINFO  epoch
//	ACKEPOCH     its last zxid  →
//	                            ←   DIFF, and each transaction that it lacks as PROPOSAL, COMMIT;
//	                                or SNAP and the whole state
//	                            ←   NEWLEADER   list of servers
//	ACK                         →
//	                            ←   UPTODATE
//	                            ←   INFORM      each further transaction
//	PING, REQUEST sync          ↔   PING, SYNC
//
// # Invariants
//
//   - The position in the History and the state that we send belong together: we read both while we
//     hold the tree's lock, which the state machine also holds when it adds to the History. So no
//     transaction is missing between them, and none comes twice.
//   - SYNC answers a sync that went through the log of this ensemble. Everything that was
//     committed before the sync has been sent before SYNC.
//   - All observers read the same History, which has a limit. If an observer is too slow, its
//     connection ends. It reconnects, and receives a DIFF or a SNAP.
//   - We never send TRUNC. We reject an observer with a newer zxid than ours.
//   - An observer writes nothing: apart from sync, a REQUEST or a REVALIDATE ends its connection.
//
// May import: of this module internal/sasl, internal/zab, proto,
// session and tree.
package observermaster
