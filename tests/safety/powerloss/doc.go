// Package powerloss tests what is left after a power cut: programs run on
// lossyfs, the power is cut at each of their system calls, and everything that
// they had acknowledged by then must be on the disk.
//
// Mounting needs root and /dev/fuse. Without them the tests are skipped, or fail
// if ZKGO_REQUIRE=1. CUTS sets how many cuts are made in each run (default few,
// "all" for every operation).
package powerloss
