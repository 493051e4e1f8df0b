// Package server speaks the ZooKeeper client protocol on top of a
// [raftfsm.Node]: it accepts connections, answers reads from the local tree,
// proposes writes, delivers watch events, and tells operators how it is doing.
// It is also the way to embed zkgo in a program: [Start], [Server.Dial],
// [Server.Close].
//
// It imports raftfsm, tree, session, watch, proto and its own subfolders. It
// knows nothing of the tree's rules: what a write does is the tree's business.
//
// The life of a request. A few goroutines go from one socket with something to
// read to the next; connections that are busy, or that are no sockets, have a
// goroutine each (rounds.go, readloop.go). A read with nothing of its session in
// flight is answered right there, under the tree's read lock (reads.go). A write
// is checked to decode, proposed with the client's own bytes (writes.go), and
// waits in the connection's queue (pending.go); whatever the client sends behind
// it waits there too. When the write has been applied, the goroutine that applied
// it fires the events, answers it, and runs what waits behind it up to the next
// write, still under the tree's lock (complete.go). Replies collect in the
// connection's output buffer and are written many at a time (output.go).
//
// Invariants:
//   - Replies leave a connection in the order of its requests, except for auth
//     and sasl, which overtake, as in ZooKeeper.
//   - Replies and events enter an output buffer under the tree's lock, so an
//     event is never behind a reply of a later state, nor before the reply that
//     set its watch.
//   - The goroutine that applies the log never waits for a socket.
//   - No buffer belongs to a connection that is idle, and on Linux no goroutine.
//   - A connection has one reader at a time, and one that waits holds up no other.
//   - A reply leaves only while the server is known to be in touch with its
//     ensemble (gate.go).
//
// Lock order: the tree's lock, the watch table's, a connection's. The
// Server's own mutex and that of the rounds are leaves: nothing is locked while
// they are held.
package server
