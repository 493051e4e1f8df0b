// Package powerloss tests which data survives a power cut: programs run on lossyfs, we cut the
// power at each of their system calls, and everything that they had acknowledged by then must be on
// the disk.
//
// Mounting needs root and /dev/fuse. Otherwise the tests are skipped, or fail if ZKGO_REQUIRE=1.
// CUTS sets how many cuts are made in each run (default few, "all" for every operation).
package powerloss
