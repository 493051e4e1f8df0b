// Package raftlog holds the durable stores of a Raft node: the log, the vote and the
// snapshots.
//
// Two libraries can store the log, raft-wal (the default, one fsync per call) and
// raft-boltdb. Neither is reliable as it is: neither detects a flipped byte, both report
// an I/O error once and carry on, and Raft itself panics on some of these errors. If
// raft-wal 0.4.0 is stopped between filling a segment and recording that, its log becomes
// unusable (see wal.go). Store wraps either of them and adds what is missing.
//
// Invariants:
//
//   - Everything that StoreLogs, Set or SetUint64 acknowledges is on disk, and so are
//     the directory entries that lead to it. With Options.Behind, Await says so for
//     commands, and StoreLogs writes several batches concurrently.
//   - Every entry carries a CRC32C over index, term, type and data in
//     Log.Extensions. It is verified when an entry arrives that has one and
//     whenever one is read from disk. Log.Extensions is therefore reserved.
//   - The vote, i.e. its term and its candidate, is one record and changes in
//     one transaction.
//   - The first I/O error is latched: nothing is acknowledged after it. A retry
//     of a failed fsync may "succeed" although the pages are gone.
//   - Entries are removed from the front only if the newest snapshot covers
//     them and has been read back and verified.
//   - Damage found at Open is an error that names the file and, if there is one,
//     the log index. Only a last record that was never acknowledged, because the
//     machine stopped while writing it, is cut off, together with everything that
//     was being written at the same time, and Open logs that. So that damage isn't
//     mistaken for this case, the store records what was on disk when it was last
//     closed, and each batch that is written concurrently with others records what
//     was on disk at that time.
//
// After an error was latched every call blocks until Close. A call whose error would make
// Raft panic (reading an entry, saving the term) doesn't return even then: its goroutine
// ends instead of the whole program.
//
// bbolt panics, partly in its own goroutines, when it reads a damaged page. So our own
// code checks the whole file at Open, before bbolt sees it. A file that another process
// damages while it is open is out of scope.
//
// May import: hashicorp/raft and go-hclog, raft-boltdb, raft-wal, bbolt, the
// standard library; of this module only internal/vfs.
package raftlog
