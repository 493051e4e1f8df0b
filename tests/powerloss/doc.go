// Package powerloss tests what is left after the power goes: programs run on
// lossyfs, the power is cut at each of their system calls, and whatever they
// had acknowledged by then must be found on what the disk kept.
//
// Mounting takes root and /dev/fuse. Without them the tests are skipped, or
// fail when ZKGO_REQUIRE=1. CUTS sets how many cuts are made in each run
// (default few, "all" for every operation).
package powerloss
