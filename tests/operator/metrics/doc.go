// Package metrics holds what operators see of a server against what reads it:
// promtool reads /metrics, the alert rules and the expressions of the dashboard;
// go-zookeeper, Kazoo and others read the four-letter words; and Apache ZooKeeper
// answers the same words, to be compared line by line.
//
// The tests need ZKGO_REQUIRE=1, and ZKGO_LIVE=1 for the real ZooKeeper; then
// nothing is skipped.
package metrics
