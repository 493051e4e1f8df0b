// Package raftlog holds the durable stores of a Raft node: the log, the vote and the
// snapshots. docs/design/log.md describes the files, a start, a purge and a recovery.
//
// The log is in segment files: wal.go has the list of segments, segformat.go the format,
// segtail.go appends, segscan.go verifies and recovers, meta.go holds the list and the
// vote. A program may instead pass a Format, package boltlog, in Options.Bolt. Store adds
// what applies to both: checksums of entries, the first error, the vote, and when entries
// may go.
//
// Invariants:
//
//   - Everything that StoreLogs, Set or SetUint64 acknowledges is on disk, and so are
//     the directory entries that lead to it. One write to the log runs at a time.
//   - Every entry carries a CRC32C over index, term, type and data in
//     Log.Extensions. It is verified when an entry arrives that has one and
//     whenever one is read from disk. Log.Extensions is therefore reserved.
//   - The vote, i.e. its term and its candidate, is one record and changes as a whole.
//   - The first I/O error is latched: nothing is acknowledged after it. A retry
//     of a failed fsync may "succeed" although the pages are gone.
//   - Entries are removed from the front only if the newest snapshot covers
//     them and has been read back and verified.
//   - Damage found at Open is an error that names the file and, if there is one,
//     the log index. Only a last record that was never acknowledged, because the
//     machine stopped while writing it, is cut off, and Open logs that. So that damage
//     isn't mistaken for this case, the store records what was on disk when it was last
//     closed.
//
// After an error was latched every call blocks until Close. A call whose error would make
// Raft panic (reading an entry, saving the term) doesn't return even then: its goroutine
// ends instead of the whole program.
//
// May import: hashicorp/raft and the standard library; of this module only internal/vfs
// and internal/raftlog/engine.
package raftlog
