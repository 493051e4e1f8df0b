// Package quorum implements the quorum port of a server: the connections between the
// servers of an ensemble. Every connection starts with a handshake which proves that
// both sides mean the same ensemble and the same server. The handshake may run over
// TLS, and may use SASL inside it (Security).
//
// The package provides streams and doesn't interpret their content. Package transport
// below it implements Raft's messages.
//
// It imports sasl and the standard library.
package quorum
