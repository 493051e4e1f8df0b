// Package schemes decides which identities a client has proved with an auth packet, by
// ZooKeeper's own schemes, and keeps the identities of one client.
//
// It imports proto, tree for the fingerprints of identities, tlsport for the scheme of
// certificates, and stats for counters. It reads the tree only through a function, and
// doesn't depend on connections.
//
// Invariants:
//   - Only identities that the client has proved get into a [Set].
//   - The list of a Set is immutable, so any goroutine may keep it.
package schemes
