// Package admin serves ZooKeeper's AdminServer commands over HTTP, and liveness and
// readiness probes for process managers.
//
// It imports the standard library, package status, which provides the data, package
// fourletter, and package zoocfg, which parses the lines of the membership. It neither
// listens nor starts goroutines, because it's only an HTTP handler.
//
// We send the same replies as ZooKeeper: JSON objects with the fields in ZooKeeper's order,
// formatted as Jackson does, with status 200 even for an unknown command, and the error
// inside. Only snapshot and restore, which concern the whole state, authenticate the caller
// and report their result in the HTTP status.
package admin
