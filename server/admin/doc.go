// Package admin answers ZooKeeper's commands over HTTP, and whether a server is
// alive and ready to those who start and stop it.
//
// It imports the standard library, package status, which has what there is to
// say, and package zoocfg, which reads the lines of the membership. It neither
// listens nor starts goroutines: it is a handler.
//
// The answers are ZooKeeper's: JSON objects with the fields in ZooKeeper's
// order and spelled as Jackson does, status 200 even for a command that nobody
// knows, and the error inside. Snapshots can be neither taken nor restored: the
// files would be zkgo's and of no use to the tools that ask for them.
package admin
