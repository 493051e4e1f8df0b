// Package metrics tests a server's metrics with the programs that read them. promtool reads
// /metrics, the alert rules and the expressions of the dashboard; go-zookeeper, Kazoo and
// others read the four-letter words. It also compares the four-letter words line by line
// with Apache ZooKeeper's.
//
// The tests need ZKGO_REQUIRE=1, and ZKGO_LIVE=1 for the real ZooKeeper; then nothing is
// skipped.
package metrics
