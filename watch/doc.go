// Package watch keeps who watches what on one server: one-shot data and child
// watches, persistent and persistent-recursive ones. Watches belong to a
// connection and die with it; clients set them again when they reconnect.
//
// It imports proto and the standard library only, and opens no sockets: an
// event goes to the [Sink] of each connection.
//
// Invariants:
//   - A watch stands in both indexes, by path and by watcher, or in neither.
//   - One event reaches a watcher once, however many of its watches match.
//   - A one-shot watch is gone when the call that fired it returns.
//
// Lock order: the table's mutex is taken while the tree's lock is held, and
// a Sink takes its connection's lock while the table's is held; never the
// other way round.
package watch
