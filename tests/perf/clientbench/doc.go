// Package clientbench compares this module's client with go-zookeeper/zk on the same
// server. We run the server in a separate process, so that we measure only the times and
// allocations of the clients.
//
//	go test -bench . ./tests/perf/clientbench
//
// ZKGO_BENCH_ADDR names another server, e.g. an Apache ZooKeeper.
package clientbench
