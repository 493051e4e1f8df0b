// Package clitools tests the commands of zkgo cli that zkCli.sh doesn't have against the
// real ZooKeeper. It runs each on Apache ZooKeeper and on zkgo, on the same tree with 10,000 znodes
// and every kind of znode, and compares the output; it copies, moves and compares subtrees between
// the two.
//
// It needs Java and ZooKeeper's jars (package oracle). No package imports it.
package clitools
