// Package admin answers ZooKeeper's commands over HTTP, and whether a server is
// alive and ready to those who start and stop it.
//
// It imports the standard library, package status, which has what there is to
// say, and package zoocfg, which reads the lines of the membership. It neither
// listens nor starts goroutines: it is a handler.
//
// The answers are ZooKeeper's: JSON objects with the fields in ZooKeeper's
// order and spelled as Jackson does, status 200 even for a command that nobody
// knows, and the error inside. Only snapshot and restore, which are about the whole
// state, ask who comes and answer with a status that says what became of it.
package admin
