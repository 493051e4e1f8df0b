// Package admin serves ZooKeeper's AdminServer commands over HTTP, and liveness and
// readiness probes for process managers.
//
// It imports the standard library, package status, which provides the data, package
// fourletter, and package zoocfg, which parses the lines of the membership. It neither
// listens nor starts goroutines, because it's only an HTTP handler.
//
// We send the same replies as ZooKeeper: JSON objects with the fields in ZooKeeper's order,
// in Jackson's format, with status 200 even for an unknown command, and the error inside.
// Commands that change the server, or show more than its role and numbers, are only for
// administrators ([Authorizer]), even if the ACL of the root allows more to all clients.
// Other callers get an HTTP status for this.
package admin
