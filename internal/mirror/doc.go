// Package mirror keeps a copy of the state of a running Apache ZooKeeper ensemble, and proves
// by ZooKeeper's own digests that it is the same.
//
// # Invariants
//
//   - The state is only used when it is exact: after Synced, and with a digest that matched if
//     the ensemble sends digests (ZooKeeper 3.6 and later).
//   - A digest that doesn't match ends the mirror. We report the transaction, and its paths.
//
// May import: of this module internal/learner and internal/offline/zkfiles.
package mirror
