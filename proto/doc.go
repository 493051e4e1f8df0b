// Package proto defines the ZooKeeper client protocol: the jute codec, the
// records of every request and reply, operation and error codes, the stat
// structure, access control lists and the rules for paths.
//
// One table describes each operation: its name, its record, how a server handles it, its
// path, the permission that it needs, and whether it makes the tree larger. We define each
// record's layout once, in its Decode and Append.
//
// The package imports only the standard library, starts no goroutines, opens no sockets and
// logs nothing. All other packages use its types.
//
// Invariants:
//   - Decode never reads past its frame, never allocates more than the frame could
//     contain, and never panics, whatever the input.
//   - Append(nil) of a decoded record returns the bytes it was decoded from,
//     except for what jute doesn't preserve (e.g. a boolean of 2, invalid UTF-8).
//   - Null and empty stay distinct: a null buffer or vector is nil, an empty one
//     is not; a null string is [NullString].
//
// All integers on the wire are big-endian two's complement. We follow Apache ZooKeeper 3.9
// (ZooDefs.OpCode, zookeeper.jute and the server's behaviour), and the conformance tests
// check that we do.
package proto
