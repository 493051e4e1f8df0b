// Package takeover makes a zkgo server or ensemble follow a running Apache ZooKeeper ensemble and
// replace it.
//
// The leader of the zkgo servers has a connection to the leader of the ensemble (package
// learner). It puts the ensemble's state, and then each of its transactions, into the zkgo
// servers' own log (raftfsm.Mirroring). So every zkgo server has the state on its own disk, and
// after a change of leader or a restart the next connection continues where the log ends.
//
// # Invariants
//
//   - A state goes into the log only when it is exact: after the learner's Synced.
//   - Transactions go into the log in their order, each after the one before it. The state
//     machine refuses any other; then we ask the ensemble again for the missing ones.
//   - At most queueLimit bytes wait for the log. We close a connection that delivers more, and the
//     next connection continues there.
//   - We take over only after no client port of the ensemble answers any more, and only with
//     everything that the ensemble's leader has ordered by then.
//
// May import: of this module internal/learner, internal/mirror, internal/offline/zkfiles,
// internal/smallfile, internal/vfs, internal/words, internal/zktxn, proto, raftfsm, session and tree.
package takeover
