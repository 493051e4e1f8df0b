// Package deploy installs, starts, moves and upgrades zkgo as an operator does: with the
// wrappers for ZooKeeper's scripts, in an empty root directory like a container's, from a
// Debian package, with the Kubernetes manifests, and in the drills of docs/operate.
//
// It runs with ZKGO_REQUIRE=1, as root on Linux.
package deploy
