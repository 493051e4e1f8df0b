// Package inspect examines the files of servers on disk. It lists and verifies the
// files in a directory, shows the contents of a snapshot, compares two snapshots, and
// prints the transactions of a log. It reads the files of zkgo and of Apache
// ZooKeeper, and backups.
//
// Invariants:
//
//   - We never write, lock or repair anything, so you can use the package on the
//     directories of a running server.
//   - We report every damaged file by name and never skip one silently.
//
// It may import proto, tree, session, raftfsm and internal/raftlog for zkgo's
// own files, internal/offline/zkfiles for ZooKeeper's and internal/offline/backup for backups.
package inspect
