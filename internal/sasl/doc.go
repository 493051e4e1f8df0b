// Package sasl implements SASL DIGEST-MD5 (RFC 2831) as ZooKeeper uses it. It
// implements both sides, for Java clients and Kazoo with a server, and for servers
// with each other.
//
// It imports the standard library only, opens no sockets and keeps no state except in
// a [Server] or [Client].
//
// DIGEST-MD5 is obsolete (RFC 6331) and sends a hash that an eavesdropper can attack
// offline. We support it because ZooKeeper uses it. You should prefer TLS.
package sasl
