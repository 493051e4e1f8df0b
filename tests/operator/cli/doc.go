// Package cli holds zkgo cli against the real zkCli.sh: the same commands to both,
// on Apache ZooKeeper and on zkgo, and what they print compared line by line, with a
// table of what differs on purpose.
//
// It needs Java and ZooKeeper's jars (package oracle), and is imported by nobody.
package cli
