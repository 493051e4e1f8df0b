// Package mirror describes the Apache ZooKeeper ensemble that zkgo servers follow and replace: its
// servers, according to the operator and to the ensemble, their state, and whether clients can
// still reach them. Package takeover replicates the state.
//
// # Invariants
//
//   - Before a cutover, we look at the old ensemble from outside (Preflight). Then no client may
//     reach it (Fence, Hook), and the mirror must have everything that was acknowledged to a client
//     (Last). None of this changes a znode or a session of the old ensemble.
//
// May import: of this module proto, internal/learner, internal/offline/zkfiles, internal/smallfile,
// internal/words and internal/zoocfg.
package mirror
