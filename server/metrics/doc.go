// Package metrics shows a server's numbers to Prometheus under the names that
// ZooKeeper gives them.
//
// It imports the standard library, Prometheus' client library and package
// status. It neither listens nor starts goroutines, and counts nothing itself:
// package measure does, where things happen.
//
// The names are ZooKeeper's own: without a prefix, and counters without _total.
// Only what can change is shown.
package metrics
