// Package server speaks the ZooKeeper client protocol on top of a [raftfsm.Node]: it accepts
// connections, answers reads from the local tree, proposes writes, delivers watch events,
// and reports its state to operators. It is also the way to embed zkgo in a program:
// [Start], [Server.Dial], [Server.Close].
//
// It imports raftfsm, tree, session, watch, proto, its own subfolders, and internal packages
// that don't depend on connections: auth for identities, limits for resource limits, ops for
// operators, and listen and machine for checks at startup. It doesn't implement the tree's
// rules: the tree decides the effect of a write.
//
// A connection (conn.go) has three parts: the reader (reader.go), the reply queue
// (replyqueue.go) and the client's session (conn.go). The comments of each part name the
// goroutines that may use it.
//
// The life of a request. A few workers share an internal/poller and read from the sockets
// that have input; busy connections, and connections without a socket, have a goroutine each
// (polling.go, readloop.go). A read is answered immediately if no earlier request of its
// session is in flight, under the tree's read lock (reads.go). A write is checked to decode,
// proposed with the client's own bytes (writes.go), and waits in the reply queue, like all
// later requests of the client. The goroutine that applies the write fires the events,
// answers the write, and answers the requests queued after it up to the next write, still
// under the tree's lock (complete.go). Replies collect in the output of the reply queue and
// are written many at a time (output.go).
//
// Invariants:
//   - Replies leave a connection in the order of its requests, except for auth
//     and sasl, which overtake, as in ZooKeeper.
//   - Replies and events enter an output buffer under the tree's lock, so an
//     event never follows a reply of a later state, nor precedes the reply that
//     set its watch.
//   - The goroutine that applies the log never waits for a socket.
//   - An idle connection has no buffer and, on Linux, no goroutine.
//   - A connection has one reader at a time, and a reader that waits blocks no other.
//   - A reply leaves only while the server is known to be in touch with its
//     ensemble (liveness.go).
//
// Lock order: the tree's lock, the watch table's lock, a reply queue's lock. The mutexes of
// the client table (clients.go) and of the poller come last: a goroutine that holds one
// acquires no other lock, except for the lock of the log of complaints.
package server
