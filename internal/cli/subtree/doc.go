// Package subtree reads, copies, moves, deletes, compares, exports and imports whole
// subtrees of any ZooKeeper.
//
// Everything builds on one concept: a [Source], which yields the znodes of a subtree in a
// fixed order, parents before children and siblings by name. Both a live tree ([Walk]) and
// a file ([Read]) are sources. [Apply] makes a tree match a source, [Diff] compares two
// sources, [Export] writes one to a file, and [Move] is a copy, a comparison and a
// deletion.
//
// # Concurrent changes
//
// ZooKeeper can't read a subtree at one instant. A znode from a source is consistent, except that
// the source reads its data, its ACL and the names of its children one after the other. It reads
// different znodes at different times. A source skips a znode that is deleted before it is read,
// and doesn't see one created in a parent that was already read. All writes specify the version
// that they replace or delete. If another client was faster, we stop with a [ConflictError], so
// that we never overwrite another client's write.
//
// # What clients can't see
//
// ZooKeeper doesn't tell its clients that a znode is a container or has a TTL. We copy and
// export both as persistent znodes. A file may say "container" or "ttl", and Apply then
// creates them. An ephemeral znode belongs to a session, which can't be copied: the znode
// is skipped or, on request, made persistent. A sequential znode is a plain znode with a
// number in its name; see [Report.Sequences] for the consequences.
//
// # Imports
//
// The package imports client, proto and a YAML reader, but nothing of the server. All
// functions are safe for concurrent use.
package subtree
