// Package oracle runs the real Apache ZooKeeper 3.9.5 for tests: it finds or
// installs the jars (install.sh), starts a standalone server or an ensemble in
// directories of its own on free ports, waits until it serves, and stops it.
//
// It is test support: it imports the standard library only, and nothing but
// tests imports it. No process outlives the test that started it: Stop kills
// and reaps it, and on Linux the kernel kills it when the test binary dies.
package oracle
