// Package secure tests zkgo's security with the tools that operators use. curl and openssl
// inspect its ports, Java and Kazoo clients authenticate, and the tests compare its audit
// log with the one that Apache ZooKeeper writes for the same requests.
//
// The tests need ZKGO_REQUIRE=1, and ZKGO_LIVE=1 for the real ZooKeeper; then nothing is
// skipped.
package secure
