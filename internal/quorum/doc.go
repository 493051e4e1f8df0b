// Package quorum is what the servers of an ensemble say to each other: one
// quorum port per server, on which every connection opens with a handshake
// that proves that both ends mean the same ensemble and the same server.
//
// In front of that there may be TLS, within that SASL (Security).
//
// It carries Raft (Transport), and the other streams between servers as plain
// connections. It knows nothing of sessions, znodes or ZooKeeper's protocol.
//
// It imports hashicorp/raft, sasl and the standard library.
package quorum
