// Package subtree reads, copies, moves, deletes, compares, exports and imports
// whole subtrees, of any ZooKeeper.
//
// Everything is built on one word: a [Source] gives the znodes of a subtree in
// one order, parents before children and siblings by name. A tree that lives
// ([Walk]) and a file ([Read]) are sources. [Apply] makes a tree look like a
// source, [Diff] compares two of them, [Export] writes one down, and [Move] is a
// copy, a comparison and a deletion.
//
// # When the tree changes meanwhile
//
// ZooKeeper has no way to read a subtree at one instant. What a source gives of
// one znode is true together except for its data, its ACL and the names of its
// children being read one after the other; different znodes are read at different
// times. A znode that is deleted before it is read is left out, one that is
// created in a parent that was read is not seen. Whatever writes says which
// version it means to replace or delete and stops with a [ConflictError] when
// somebody else was there first, so that nobody's write is lost.
//
// # What cannot be told
//
// No ZooKeeper tells its clients that a znode is a container or has a time to
// live. Both are copied and exported as persistent znodes. A file may say
// "container" or "ttl", and Apply then makes them.
// An ephemeral znode belongs to a session, which cannot be copied: it is left
// out, or on request made persistent. A sequential znode is a plain one with a
// number in its name: see [Report.Sequences] for what that means.
//
// # Imports
//
// It imports client and proto, and a reader of YAML; nothing of the server.
// All functions may be called concurrently.
package subtree
