// Package raftlog holds the durable stores of a Raft node: the log, the vote and the
// snapshots. docs/design/log.md describes the files, a start, a purge and a recovery.
//
// The log is in segment files: wal.go has the list of segments, segformat.go the format,
// segtail.go appends, segscan.go verifies and recovers, meta.go holds the list and the
// vote. A program may instead pass a Format, package boltlog, in Options.Bolt. Store adds
// what applies to both: the checksums of entries, the first error, the vote, and the rule
// for removing entries.
//
// Invariants:
//
//   - Everything that StoreLogs, Set or SetUint64 acknowledges is on disk, and so are
//     the directory entries that lead to it. One write to the log runs at a time.
//   - Every entry carries a CRC32C over index, term, type and data in Log.Extensions. We
//     verify it when an entry arrives that has one, and whenever we read one from disk.
//     Log.Extensions is therefore reserved.
//   - The vote, i.e. its term and its candidate, is one record and changes as a whole.
//   - We latch the first I/O error and acknowledge nothing after it: a retry of a failed
//     fsync may "succeed" although the pages are gone.
//   - We remove entries from the front only if the newest snapshot covers them and we have
//     read it back and verified it.
//   - Damage found at Open is an error that names the file and, if there is one, the log
//     index. We cut off only a last record that was never acknowledged because the machine
//     stopped while writing it, and Open logs that. To distinguish damage from this case,
//     the store records what was on disk when it was last closed.
//
// After an error was latched every call blocks until Close. If the error of a call would
// make Raft panic (reading an entry, saving the term), the call doesn't return even then:
// we end its goroutine instead of the whole program.
//
// May import: hashicorp/raft and the standard library; of this module only internal/vfs
// and storage.
package raftlog
