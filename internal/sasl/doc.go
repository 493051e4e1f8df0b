// Package sasl is SASL DIGEST-MD5 (RFC 2831) as ZooKeeper has it: both sides, as
// Java's clients and Kazoo speak it with servers, and servers with one another.
//
// It imports the standard library only, opens no sockets and keeps no state
// but that of one [Server] or [Client].
//
// DIGEST-MD5 is historic (RFC 6331) and sends a hash that can be attacked
// offline: it is here because ZooKeeper uses it. Prefer TLS.
package sasl
