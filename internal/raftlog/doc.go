// Package raftlog implements the durable stores of a Raft node: the log, the vote and the
// snapshots. docs/design/log.md describes the files, a start, a purge and a recovery.
//
// The log consists of segment files: wal.go manages the list of segments, segformat.go
// defines the format, segtail.go appends, segscan.go verifies and recovers, meta.go
// stores the list and the vote. A program may instead pass another Format in
// Options.Bolt, i.e. package boltlog. Store adds the features that both share: the
// checksums of entries, the first error, the vote, and the rule for removing entries.
//
// Invariants:
//
//   - Everything that StoreLogs, Set or SetUint64 acknowledges is on disk, and so are
//     the directory entries that lead to it. One write to the log runs at a time.
//   - Every entry carries a CRC32C over index, term, type and data in Log.Extensions. We
//     verify it when an entry with a checksum arrives, and whenever we read an entry from
//     disk. Log.Extensions is therefore reserved.
//   - The vote, i.e. its term and its candidate, is one record and changes as a whole.
//   - We latch the first I/O error and acknowledge nothing after it: a retry of a failed
//     fsync may "succeed" although the pages are gone.
//   - We remove entries from the front only if the newest snapshot covers them and we have
//     read it back and verified it.
//   - Damage found at Open is an error that names the file and, if there is one, the log
//     index. We cut off only a last record that was never acknowledged because the
//     machine stopped while writing it, and Open logs that. To distinguish damage from
//     this case, the store records the end of the log when it is closed.
//
// After an error, every call blocks until Close. If the error of a call would make Raft
// panic (reading an entry, saving the term), the call doesn't return even then: we end
// its goroutine rather than the whole program.
//
// May import: hashicorp/raft and the standard library; of this module only internal/vfs
// and storage.
package raftlog
