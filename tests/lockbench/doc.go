// Package lockbench measures locks side by side: those of recipes/lock at zkgo and
// at Apache ZooKeeper, etcd's, and Redis's, on the same machine and in the same run, in turns,
// several times; and it shows what a lock in Redis is worth when the primary
// fails, and what one here is.
//
// Servers are processes on a disk, with the durability that their table names.
// Clients are programs of workers/: eight clients in one process, which is one
// clock. What is not installed is left out, and the report says so.
//
// run/ is the command. The tests of this package show the failover, with
// ZKGO_LIVE=1 or ZKGO_REQUIRE=1, and never judge how long anything took.
package lockbench
