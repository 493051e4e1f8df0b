// Package storage defines the interfaces through which a server stores its data: a
// file system, and a log that is a single file in its own format. A program that
// embeds the server can implement them, e.g. to test it with disks that fail. Package
// boltlog implements Format; a program links it only if it imports it.
//
// Invariant: data that an implementation reports as durable survives a power failure. The
// server relies on this when it acknowledges a write.
//
// May import: hashicorp/raft, for the entries of a log; nothing of this module.
package storage
