// Package tree implements the tree of znodes, the replicated state that clients see.
//
// It is pure. A mutation has a transaction (zxid, time, session, identities, the
// leader's switches) and a request as input, and returns a result and the events it
// caused. There is no clock, no visible randomness, no configuration and no
// goroutine. Two trees that applied the same transactions are equal, whatever
// snapshots they were restored from on the way. It imports proto, its own internal
// packages and the standard library only.
//
// # Structure
//
// internal/arena stores the nodes and finds them by path; it has all of the unsafe code.
// The slot of a deleted znode is reused, so no code may keep a Node from one transaction
// to the next. internal/acl interns access control lists and evaluates them. Data, paths
// and lists are immutable once stored: readers may keep them after they release the lock.
//
// A Tree consists of three layers. The store has the nodes, and every index
// (ephemerals, containers, quotas) and total; a node enters and leaves it only
// through attach and detach. The editor changes the store: edit, commit and the
// quotas' accounting keep the image that an active Snapshot needs and the undo
// journal of a multi. An exec executes one transaction through the editor, in
// ZooKeeper's order of checks. Undoing a multi uses detach and its inverse, reattach.
//
// # Locking
//
// The Tree has one RWMutex. Methods that change or read the tree require that their
// caller holds it, because callers combine several steps under one lock, e.g. a read and
// the registration of its watch, or a transaction and its replies. Only Snapshot.WriteTo,
// Snapshot.Stored and Snapshot.Release, which run concurrently with writers, lock it
// themselves.
package tree
