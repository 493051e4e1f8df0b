// Package move takes data from the real Apache ZooKeeper to zkgo and back: its
// directories are imported, also from snapshots that were written while clients
// wrote, what was exported is loaded by it again, and clients go along with their
// sessions.
//
// The tests need ZKGO_REQUIRE=1 and ZKGO_LIVE=1; then nothing is skipped.
package move
