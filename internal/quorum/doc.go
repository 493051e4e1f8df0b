// Package quorum implements the communication between the servers of an ensemble. Each
// server has one quorum port. Every connection to it starts with a handshake that proves
// that both ends mean the same ensemble and the same server.
//
// The handshake may run over TLS, and may use SASL inside it (Security).
//
// The package carries Raft (Transport), and the other streams between servers as plain
// connections. It doesn't depend on sessions, znodes or ZooKeeper's protocol.
//
// It imports only hashicorp/raft, sasl and the standard library.
package quorum
