// Package backup backs up running servers and restores the backups to data directories.
//
// A backup is a snapshot of one moment in ZooKeeper's own format, as provided by the
// AdminServer of zkgo and of Apache ZooKeeper 3.9. We store it in a container with
// checksums, the source and the time. Any program that reads ZooKeeper's snapshots can read
// the contents.
//
// Invariants:
//
//   - We give a backup its final name only after it is complete, durable and, unless
//     disabled, loaded and compared with its digest.
//   - We never use a byte of a file before we have verified its checksum. We reject a
//     truncated, corrupted, reordered or extended file with its name and the offset.
//   - A restore writes to empty directories only, and it restores either everything or
//     nothing.
//
// It may import proto, tree, session, raftfsm, internal/raftlog, internal/vfs and
// internal/offline/zkfiles, and no library beyond the standard one.
package backup
