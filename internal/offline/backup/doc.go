// Package backup takes backups of running servers and restores them to data
// directories.
//
// A backup is a snapshot of one moment in ZooKeeper's own format, as provided by the
// AdminServer of zkgo and of Apache ZooKeeper 3.9. It's stored in a container with
// checksums, the source and the time. Any program that reads ZooKeeper's snapshots
// can read the contents.
//
// Invariants:
//
//   - A backup gets its final name only after it is complete, durable and, unless
//     disabled, loaded and compared with its digest.
//   - No byte of a file is used before its checksum is verified. A truncated, corrupted,
//     reordered or extended file is rejected with its name and the offset.
//   - A restore writes to empty directories only, and it restores either everything or
//     nothing.
//
// It may import proto, tree, session, raftfsm, internal/raftlog, internal/vfs and
// internal/offline/zkfiles, and no library beyond the standard one.
package backup
