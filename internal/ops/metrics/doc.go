// Package metrics exports a server's metrics to Prometheus under ZooKeeper's names.
//
// It imports the standard library, Prometheus' client library and package status. It
// neither listens nor starts goroutines, and it counts nothing itself: the
// instrumented packages do that where events happen.
//
// The names are ZooKeeper's own: without a prefix, and counters without _total. As in
// ZooKeeper, every name is exported, also those that are always 0 here.
package metrics
