// Package secure holds zkgo's security against what operators have: curl and
// openssl look at its ports, Java and Kazoo clients authenticate, and its audit
// log is compared with the one that Apache ZooKeeper writes of the same requests.
//
// The tests need ZKGO_REQUIRE=1, and ZKGO_LIVE=1 for the real ZooKeeper; then
// nothing is skipped.
package secure
