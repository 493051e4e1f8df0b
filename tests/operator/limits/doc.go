// Package limits overloads Apache ZooKeeper and zkgo in the same ways and compares
// what clients see: frames that are too long, too many connections, sessions that
// begin too fast, large requests, requests that wait for too long, writes without
// permission. A zkgo whose memory is full is tried alone, since ZooKeeper has
// nothing to compare it with.
//
// The tests need ZKGO_REQUIRE=1, and ZKGO_LIVE=1 for the real ZooKeeper; then
// nothing is skipped.
package limits
