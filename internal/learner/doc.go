// Package learner follows a running Apache ZooKeeper ensemble as an observer. It speaks the
// learner side of ZAB to the ensemble's leader: it receives the state as a snapshot or as the
// transactions that are missing, and then every committed transaction.
//
// We speak the protocol of ZooKeeper 3.4 to 3.9 (org.apache.zookeeper.server.quorum: Learner,
// LearnerHandler, Observer). The protocol's version number is the same in all these releases.
//
// # Requests
//
// Once the state is exact, an observer may pass on its clients' requests (Request), ask for a
// session that a client brings along (Revalidate), and tell which sessions it has heard from
// (Config.Touched). The leader executes a request like a follower's: the transaction arrives at
// Receiver.Commit with the session and cxid of the request, also if it failed (ErrorTxn). The
// packets follow these methods of ZooKeeper 3.9.5: Learner.request, validateSession and ping;
// LearnerHandler.run; Leader.processSync, sendSync and revalidateSession.
// PrepRequestProcessor.checkSession decides who may write in a session:
//
//   - A session belongs to the connection that created or revalidated it last. A request on
//     another connection fails with SESSIONMOVED. A reconnect to the same leader is another
//     connection, so each client's session should be revalidated on it.
//   - The leader expires a session that no connection has touched for its timeout.
//
// # Effects on the ensemble
//
// An observer need not be in the ensemble's configuration. It has no vote, and the leader
// doesn't wait for it. We change nothing on the ensemble: its leader logs that an observer
// joined, and counts it in mntr (zk_synced_observers). Requests are the exception.
//
// # Invariants
//
//   - A transaction is delivered once and in the order of zxids, also after a reconnect: a
//     leader that sends anything else is an error.
//   - A leader that asks us to discard transactions (TRUNC) is an error. An observer only receives
//     committed transactions, so the ensemble has lost some.
//   - Receiver.Synced is called when the state is exact. Until then, a state that came as a
//     snapshot may already contain changes of transactions that follow.
//   - A length from the network never makes us allocate more memory than bytes have arrived,
//     plus a MiB.
//   - An answer (SYNC, REVALIDATE) that doesn't belong to the oldest question is an error.
//     SYNC carries nothing, so its place in the order is all that identifies it.
//   - A request that a leader would never answer, or would end the connection for, isn't sent.
//
// May import: of this module proto, tree, internal/sasl and internal/offline/zkfiles. Follow is for
// one goroutine. The other methods of Conn are safe for concurrent use.
package learner
