// Package metrics counts durations and sizes on the hot path, and shows a
// server's numbers to Prometheus under the names that ZooKeeper gives them.
//
// It imports the standard library, Prometheus' client library and package
// status. It neither listens nor starts goroutines.
//
// Observing takes a few atomic additions, no lock and no allocation; everything
// else is done when somebody asks. The names are ZooKeeper's own: without a
// prefix, and counters without _total. Only what can change is shown.
package metrics
