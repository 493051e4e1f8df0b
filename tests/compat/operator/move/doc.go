// Package move migrates data from the real Apache ZooKeeper to zkgo and back. It imports
// ZooKeeper's directories, including snapshots written while clients wrote, makes ZooKeeper
// load exported data, and moves clients along with their sessions.
//
// The tests need ZKGO_REQUIRE=1 and ZKGO_LIVE=1; then nothing is skipped.
package move
