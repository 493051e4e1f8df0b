// Package stats counts events in a server: requests, replies and their latencies, refused
// clients, elections, accesses by namespace. Operators see these numbers through package
// status and as metrics.
//
// It imports the standard library, histogram, status, which it fills, proto for operations,
// and tree for digests.
//
// Invariants:
//   - Counting acquires no lock, except for a new namespace, and allocates nothing.
//   - Only one goroutine uses a Tally, a ReplySizes or a Conn at a time.
package stats
