// Package mirror knows the Apache ZooKeeper ensemble that zkgo servers follow and take over from:
// its servers as the operator and the ensemble describe them, what they say about themselves, and
// whether anything of it can still reach a client. Package takeover has the copy of its state.
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
