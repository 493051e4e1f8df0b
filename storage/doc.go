// Package storage holds the interfaces through which a server keeps its data: a file
// system, and a log that is a single file in a format of its own. A program that embeds
// the server can implement them, e.g. to test it with disks that fail. Package boltlog
// implements Format; a program links it only if it imports it.
//
// Invariants: what an implementation reports as durable survives a power failure. The
// server acknowledges writes because of it.
//
// May import: hashicorp/raft, whose entries a log holds; nothing of this module.
package storage
