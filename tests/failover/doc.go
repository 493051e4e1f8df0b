// Package failover measures how long an ensemble of three servers keeps its
// clients waiting when servers are killed, stopped, frozen, starved or have
// slow disks: zkgo and Apache ZooKeeper, on the same machine, in the same run,
// with the same zoo.cfg and the same clients.
//
// The clients speak raw frames and do one thing at a time, so that what is
// measured is the servers: a writer at every server sets its own znode again
// and again, a reader at every server reads, holders own an ephemeral znode and
// do nothing but ping. Whoever loses its connection tries again after a few
// milliseconds, its own server first. Every client checks while it runs that no
// acknowledged write is lost, that no error comes but a lost connection, and
// that its session lives.
//
// run/ is the command; the tests of this package run every scenario once and
// judge only what is right and wrong, never how long it took.
package failover
