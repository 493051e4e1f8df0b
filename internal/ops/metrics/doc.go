// Package metrics exports a server's metrics to Prometheus under ZooKeeper's names.
//
// It imports the standard library, Prometheus' client library and package status. It
// neither listens nor starts goroutines, and it doesn't count: the instrumented packages do
// that where events happen.
//
// We use ZooKeeper's own names, i.e. without a prefix, and counters without _total. Like
// ZooKeeper, we export every name, even if the value is always 0 here.
package metrics
