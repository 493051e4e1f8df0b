// Package raftlog holds the durable stores a Raft node stands on: the log,
// the vote and the snapshots.
//
// Two libraries keep the log, raft-wal (the default, one fsync for each call)
// and raft-boltdb. Neither is safe to stand on as it is: neither notices a
// flipped byte, both report an I/O error once and carry on, Raft itself panics
// on some of these errors, and raft-wal 0.4.0 loses its way when it is
// stopped between filling a segment and recording that (see wal.go). Store
// wraps either of them and adds what is missing.
//
// Invariants:
//
//   - Whatever StoreLogs, Set or SetUint64 acknowledged is on disk, and so are
//     the directory entries that lead to it. With Options.Behind that is said of
//     commands by Await, and StoreLogs writes several batches at the same time.
//   - Every entry carries a CRC32C over index, term, type and data in
//     Log.Extensions. It is verified when an entry arrives that has one and
//     whenever one is read from disk. Log.Extensions is therefore reserved.
//   - The vote, that is its term and its candidate, is one record and changes in
//     one transaction.
//   - The first I/O error is latched: nothing is acknowledged after it. A retry
//     of a failed fsync may "succeed" although the pages are gone.
//   - Entries are removed from the front only when the newest snapshot covers
//     them and was read back and verified.
//   - Damage found at Open is an error that names the file and, where there is
//     one, the log index. Only a last record that was never acknowledged,
//     because the machine stopped while writing it, is cut off, with a line in
//     the log, and with it what was being written at the same time. What was on
//     disk when the store was last closed is recorded, and in a batch that is
//     written beside others what was then, so that damage is not mistaken for this.
//
// After an error was latched every call blocks until Close. A call whose error
// Raft answers with a panic (reading an entry, saving the term) does not return
// even then: its goroutine ends there, rather than the program around it.
//
// bbolt panics, partly in goroutines of its own, when it meets a damaged page.
// The whole file is checked by our own code before bbolt sees it, at Open. A
// file damaged by somebody else while it is open is out of scope.
//
// May import: hashicorp/raft and go-hclog, raft-boltdb, raft-wal, bbolt, the
// standard library; of this module only internal/vfs.
package raftlog
