// Package deploy installs, starts, moves and upgrades zkgo as an operator does: by
// the wrappers of ZooKeeper's scripts, in an empty root as a container has it, from a
// Debian package, by the manifests for Kubernetes, and in the drills of
// docs/operations.md.
//
// It runs with ZKGO_REQUIRE=1, as root on Linux.
package deploy
