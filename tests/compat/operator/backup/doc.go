// Package backup destroys clusters and restores them. It backs up real processes under
// load, kills and wipes them, and checks that everything acknowledged before the backup is
// restored. It also exchanges snapshots with the real Apache ZooKeeper over HTTP, in both
// directions.
//
// The tests need ZKGO_REQUIRE=1, and those with the real ZooKeeper also ZKGO_LIVE=1; then
// nothing is skipped.
package backup
