// Package lockbench compares locks: recipes/lock on zkgo and on Apache ZooKeeper, etcd's locks, and
// Redis's. It runs them on the same machine in the same run, taking turns, several times. It also
// shows what happens to a lock in Redis and to a lock in zkgo when the primary or leader fails.
//
// Servers are processes on a disk, with the durability that their table names. Clients are
// the programs in workers/: eight clients in one process, so that they share one clock. We
// leave out services that aren't installed, and say so in the report.
//
// run/ is the command. The tests of this package show the failover, with ZKGO_LIVE=1 or
// ZKGO_REQUIRE=1. We never judge durations.
package lockbench
