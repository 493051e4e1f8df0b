// Package clitools holds the commands of zkgo cli that zkCli.sh does not have
// against the real ZooKeeper: each is run on Apache ZooKeeper and on zkgo, on the
// same tree with every kind of znode and 10,000 of them, and what they print is
// compared; subtrees are copied, moved and compared between the two.
//
// It needs Java and ZooKeeper's jars (package oracle), and is imported by nobody.
package clitools
