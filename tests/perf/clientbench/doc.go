// Package clientbench compares this module's client with go-zookeeper/zk on the same
// server. The server runs in a separate process, so that times and allocations are those of
// the clients.
//
//	go test -bench . ./tests/perf/clientbench
//
// ZKGO_BENCH_ADDR names another server, e.g. an Apache ZooKeeper.
package clientbench
