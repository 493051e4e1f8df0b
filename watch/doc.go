// Package watch keeps the watches of one server: one-shot data and child watches,
// persistent ones and persistent-recursive ones. A watch belongs to a connection and ends
// when the connection does. Clients set their watches again when they reconnect, so we
// neither store nor replicate watches.
//
// The package imports only proto and the standard library, and opens no sockets: we pass
// events to the [Sink] of each connection.
//
// Invariants:
//   - A watch is in both indexes, by path and by watcher, or in neither.
//   - We deliver an event to a watcher once, however many of its watches match.
//   - A one-shot watch is gone when the call that fired it returns.
//
// Lock order: the tree's lock, then the table's mutex, then the connection's lock, which
// a Sink acquires.
package watch
