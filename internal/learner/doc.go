// Package learner follows a running Apache ZooKeeper ensemble as an observer. It speaks the
// learner side of ZAB to the ensemble's leader: it receives the state as a snapshot or as the
// transactions that are missing, and then every committed transaction.
//
// The protocol is that of ZooKeeper 3.4 to 3.9 (org.apache.zookeeper.server.quorum: Learner,
// LearnerHandler, Observer). It has no version of its own that differs between them.
//
// # What the ensemble sees
//
// An observer need not be in the ensemble's configuration. It has no vote, and the leader
// doesn't wait for it. We change nothing on the ensemble: its leader logs that an observer
// joined, and counts it in mntr (zk_synced_observers).
//
// # Invariants
//
//   - A transaction is delivered once and in the order of zxids, also after a reconnect: a
//     leader that sends anything else is an error.
//   - A leader that asks us to discard transactions (TRUNC) is an error. An observer only gets
//     committed transactions, so the ensemble has lost some.
//   - Receiver.Synced is called when the state is exact. Until then, a state that came as a
//     snapshot may already contain changes of transactions that follow.
//   - A length from the network never makes us allocate more memory than bytes have arrived,
//     plus a MiB.
//
// May import: of this module proto, tree, internal/sasl and internal/offline/zkfiles. A Conn is for
// one goroutine, except Close.
package learner
