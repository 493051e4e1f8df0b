// Package sasl is the server's side of SASL DIGEST-MD5 (RFC 2831) as Java's
// ZooKeeper clients and Kazoo speak it, and the reader of the JAAS section
// that names its users.
//
// It imports the standard library only, opens no sockets and keeps no state
// but that of one [Exchange].
//
// DIGEST-MD5 is historic (RFC 6331) and sends a hash that can be attacked
// offline: it is here because ZooKeeper's clients use it. Prefer TLS.
package sasl
