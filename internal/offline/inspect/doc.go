// Package inspect tells what servers have left on disks: which files a directory
// holds and whether they are whole, what a snapshot contains and how two of them
// differ, what the transactions of a log did. It reads the files of zkgo, the
// files of Apache ZooKeeper and backups.
//
// Invariants:
//
//   - Nothing is written, locked or repaired, so that all of it may be done to the
//     directories of a running server.
//   - Whatever is damaged is named with its file, and never left out in silence.
//
// It may import proto, tree, session, raftfsm and internal/raftlog for zkgo's
// own files, internal/offline/zkfiles for ZooKeeper's and internal/offline/backup for backups.
package inspect
