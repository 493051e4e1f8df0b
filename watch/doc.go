// Package watch keeps the watches of one server: one-shot data and child watches,
// persistent ones and persistent-recursive ones. A watch belongs to a connection
// and ends with it; clients set their watches again when they reconnect.
//
// It imports proto and the standard library only, and opens no sockets: it passes
// events to the [Sink] of each connection.
//
// Invariants:
//   - A watch is in both indexes, by path and by watcher, or in neither.
//   - One event reaches a watcher once, however many of its watches match.
//   - A one-shot watch is gone when the call that fired it returns.
//
// Lock order: the tree's lock, then the table's mutex, then the connection's lock,
// which a Sink takes.
package watch
