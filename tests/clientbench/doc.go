// Package clientbench measures the client of this module beside go-zookeeper/zk,
// against the same server, which runs in a process of its own so that times and
// allocations are those of the clients.
//
//	go test -bench . ./tests/clientbench
//
// ZKGO_BENCH_ADDR names another server, for instance an Apache ZooKeeper.
package clientbench
