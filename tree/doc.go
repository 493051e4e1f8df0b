// Package tree holds the znodes: the replicated state that clients see.
//
// It is pure. A mutation takes a transaction (zxid, time, session, identities, the leader's
// switches) and a request, and returns a result and the events it caused. We use no clock,
// no visible randomness, no configuration and no goroutines. Two trees that applied the
// same transactions are equal, even if one was restored from a snapshot on the way. It
// imports proto and the standard library only.
//
// # Structure
//
// Nodes are stored in blocks and identified by numbers. The index, which finds a Node by
// its path, holds these numbers, and nodes refer to each other by them. A Node knows its
// parent and its position in the parent's list of children, so removing it from the list
// takes constant time. We reuse the slot of a deleted znode, so no code may keep a Node
// from one transaction to the next. Data, paths and access control lists are immutable once
// stored: readers may keep them after they release the lock. We intern lists: all nodes
// with equal lists share one copy.
//
// # Changes
//
// Every change of a node goes through edit and commit. They do all the bookkeeping: the
// running digests, the image that an active Snapshot needs, and the undo journal of a
// multi. A node enters and leaves the tree only through attach and detach, which maintain
// every index (paths, children, ephemerals, containers, quotas) and every total. Undoing a
// multi uses detach and its inverse, reattach.
//
// # Locking
//
// The Tree has one RWMutex. Methods that change or read the tree expect their caller to
// hold it, because callers combine several of them under one lock, e.g. a read and the
// registration of its watch, or a transaction and its replies. Only Snapshot.WriteTo,
// Snapshot.Stored and Snapshot.Release, which run concurrently with writers, take it
// themselves.
package tree
