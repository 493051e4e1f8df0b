// Package quorum implements the quorum port of a server: the connections between the
// servers of an ensemble. Every connection starts with a handshake that proves that both
// ends mean the same ensemble and the same server. The handshake may run over TLS, and may
// use SASL inside it (Security).
//
// The package hands out streams and doesn't know what they carry: Raft's messages are in
// package transport below it.
//
// It imports sasl and the standard library.
package quorum
