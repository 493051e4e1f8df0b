// Package zkfiles reads and writes the files in Apache ZooKeeper's data directory:
// snapshots (3.4 to 3.9; plain, gzip or snappy) and transaction logs. It converts
// their contents to zkgo's tree and session table, and back.
//
// # Use
//
//   - [WriteSnapshot] writes a tree.Snapshot and sessions to a ZooKeeper snapshot file
//     that ZooKeeper 3.4 to 3.9 can load.
//   - [ReadSnapshot] reads such a file into a tree and a session table.
//   - [Load] loads a whole directory, like ZooKeeper at startup: the newest valid snapshot, and the
//     logs after it. [State.Fill] converts the result to a tree and a session table.
//   - [ReadLog] iterates over the transactions of one log file.
//
// # A ZooKeeper snapshot alone is not a state
//
// ZooKeeper writes a snapshot while transactions are running, so its content is a state
// that never existed: each znode is as it was at some time between the zxid in the file's
// name and the end of the write. To get a state, we have to apply the transactions of that
// period again. [State.Apply] does that, using ZooKeeper's own rules for znodes that exist
// already or no longer exist. ZooKeeper 3.6 and later store a digest in snapshots and logs,
// which Load compares to check the result.
//
// # Invariants
//
//   - If we can't read something, we return an error with the file, the offset and the
//     cause. We skip nothing silently: if ZooKeeper itself ignores something, e.g. the torn
//     end of a log, we report it.
//   - We never allocate more memory for a wrong length than there are bytes.
//   - A snapshot we write isn't fuzzy: it's the state at one zxid, with the digest at
//     that zxid.
//
// The package imports proto, tree and session, and a library for snappy. It doesn't know
// servers or zkgo's log, starts no goroutines and opens no files for writing. Its functions
// are safe for concurrent use; its types aren't.
package zkfiles
