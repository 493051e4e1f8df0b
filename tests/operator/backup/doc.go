// Package backup destroys clusters and brings them back: real processes under
// load are backed up, killed and wiped, and everything that was acknowledged
// before the backup must be there again. And it exchanges snapshots with the real
// Apache ZooKeeper over HTTP, in both directions.
//
// The tests need ZKGO_REQUIRE=1, those with the real ZooKeeper ZKGO_LIVE=1, too;
// then nothing is skipped.
package backup
