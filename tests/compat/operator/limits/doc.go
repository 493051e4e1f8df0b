// Package limits overloads Apache ZooKeeper and zkgo in the same ways and compares what
// clients see: frames that are too long, too many connections, sessions that begin too
// fast, large requests, requests that wait too long, writes without permission. We test a zkgo
// server with full memory separately, because ZooKeeper has no equivalent.
//
// The tests need ZKGO_REQUIRE=1, and ZKGO_LIVE=1 for the real ZooKeeper; then nothing is
// skipped.
package limits
