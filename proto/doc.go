// Package proto defines the ZooKeeper client protocol: the jute codec, the
// records of every request and reply, operation and error codes, the stat
// structure, access control lists and the rules for paths.
//
// One table says what each operation is: its name, its record, how a server handles
// it, its path, the permission that it needs, and whether it makes the tree larger.
// Each record's layout is in its Decode and Append, and nowhere else.
//
// It imports the standard library only, starts no goroutine, opens no socket
// and logs nothing. All other packages use its types.
//
// Invariants:
//   - Decode never reads past its frame, never allocates more than the frame
//     could hold, and never panics, whatever the input.
//   - Append(nil) of a decoded record returns the bytes it was decoded from,
//     except for what jute doesn't preserve (e.g. a boolean of 2, invalid UTF-8).
//   - Null and empty stay distinct: a null buffer or vector is nil, an empty one
//     is not; a null string is [NullString].
//
// All integers on the wire are big-endian two's complement. The source for
// every protocol fact is Apache ZooKeeper 3.9 (ZooDefs.OpCode, zookeeper.jute and the
// server's behaviour), checked by the conformance tests.
package proto
