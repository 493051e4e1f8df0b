// Package mirror keeps a copy of the state of a running Apache ZooKeeper ensemble, and proves
// by ZooKeeper's own digests that it is the same.
//
// # Invariants
//
//   - The state is only used when it is exact: after Synced, and with a digest that matched if
//     the ensemble sends digests (ZooKeeper 3.6 and later).
//   - A digest that doesn't match ends the mirror. We report the transaction, and its paths.
//   - Before a cutover, we look at the old ensemble from outside (Preflight). Then no client may
//     reach it (Fence, Hook), and the mirror must have everything that a client was told of
//     (Last). None of this changes a znode or a session of the old ensemble.
//
// May import: of this module proto, internal/learner, internal/offline/zkfiles, internal/smallfile,
// internal/words and internal/zoocfg.
package mirror
