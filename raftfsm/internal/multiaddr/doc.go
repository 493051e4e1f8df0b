// Package multiaddr dials servers that have several addresses, as with ZooKeeper's
// multiAddress: the server listens on all addresses, and a peer uses the first address
// that answers. Raft knows a server by the first address of its line. ZooKeeper pings
// addresses beforehand to see which ones are reachable. Here the dial itself shows
// that, so multiAddress.reachabilityCheck has no effect.
//
// A path may accept connections and still be useless, e.g. if it loses large packets. So
// an address on which a stream stalled or a handshake failed is dialled only after the
// others, for a while.
//
// Invariants:
//   - An address that was blamed is still dialled if no other one accepts.
//   - An address is blamed for at most maxBlame.
//
// May import: internal/quorum, the standard library.
package multiaddr
