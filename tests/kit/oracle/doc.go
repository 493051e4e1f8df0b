// Package oracle runs the real Apache ZooKeeper 3.9.5 for tests: it finds or
// installs the jars (install.sh), starts a standalone server or an ensemble in
// its own directories on free ports, waits until it serves, and stops it.
// It is test support: it imports only tests/kit/process, and only tests import it. No
// process outlives the test that started it: Stop kills it.
package oracle
