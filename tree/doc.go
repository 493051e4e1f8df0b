// Package tree holds the znodes: the replicated state that clients see.
//
// It is pure. A mutation takes a transaction (zxid, time, session, identities,
// the leader's switches) and a request and returns a result and the events it
// caused; there is no clock, no randomness that shows, no configuration, no
// goroutine. Two trees that were fed the same transactions are equal, whatever
// snapshots they went through on the way. It imports proto and the standard
// library only.
//
// # Structure
//
// Nodes lie in blocks and are called by numbers: the index that finds a Node by
// its path holds these, and so do nodes of each other. A Node knows its parent
// and its position in the parent's list of children, so that it leaves the list
// in constant time. The slot of a deleted znode is used again, so nothing holds
// a Node from one transaction to another. Data, paths and access control lists
// are immutable once stored: readers may keep them after they gave up the lock.
// Lists are interned, one copy for all nodes that carry the same one.
//
// # Changes
//
// Every change of a node goes through edit and commit. Between them lies all
// bookkeeping: the running digests, the image that an active Snapshot needs,
// and the undo journal of a multi. A node enters and leaves the tree through
// attach and detach only; those keep every index (paths, children, ephemerals,
// containers, quotas) and every total. Undoing a multi uses the same four.
//
// # Locking
//
// The Tree has one RWMutex. Methods that change or read the tree expect their
// caller to hold it, because a caller combines them: a read and the
// registration of its watch, a transaction and its replies. Only
// Snapshot.WriteTo and Snapshot.Release, which run beside the writers, take it
// themselves.
package tree
