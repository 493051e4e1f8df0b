// Package cli compares zkgo cli with the real zkCli.sh. It runs the same commands with both,
// on Apache ZooKeeper and on zkgo, and compares their output line by line, with a table of
// the deliberate differences.
//
// It needs Java and ZooKeeper's jars (package oracle). No package imports it.
package cli
