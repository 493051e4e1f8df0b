// Package backup takes backups of running servers and makes data directories of
// them.
//
// A backup is a snapshot of one moment in ZooKeeper's own format, as the
// AdminServer of zkgo and of Apache ZooKeeper 3.9 hands it out, in a container
// with checksums that says from where and when it comes. Whatever reads
// ZooKeeper's snapshots can read what is inside.
//
// Invariants:
//
//   - A backup has its name only when it is whole, durable and, unless that was
//     not wanted, has been loaded and compared with its digest.
//   - No byte of a file is believed before its checksum: a file that was cut off,
//     flipped, reordered or appended to is refused, with its name and the place.
//   - What is restored goes into empty directories only, all of it or nothing.
//
// It may import proto, tree, session, raftfsm (and its disk and raftlog) and
// internal/offline/zkfiles, and no library beyond the standard one.
package backup
