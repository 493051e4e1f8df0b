// Package failover measures how long an ensemble of three servers keeps its clients
// waiting when servers are killed, stopped, frozen, starved or have slow disks. It
// measures zkgo and Apache ZooKeeper on the same machine, in the same run, with the same
// zoo.cfg and the same clients.
//
// The clients speak raw frames and send one request at a time, so that we measure the
// servers and not the clients. Each server has a writer, which sets its own znode
// repeatedly, a reader, and holders, which own an ephemeral znode and only ping. A client
// that loses its connection tries again after a few milliseconds, its own server first.
// Every client checks while it runs that no acknowledged write is lost, that no error other
// than a lost connection occurs, and that its session stays alive.
//
// run/ is the command. The tests of this package run every scenario once. We check only correctness
// there, no durations.
package failover
