// Package mntr makes the lines of ZooKeeper's four-letter word mntr.
//
// It imports the standard library, status, whose metrics the lines are, and fourletter
// for the format of numbers. The server adds what it counts.
//
// A server exports every name that ZooKeeper 3.9 exports, with 0 for what it doesn't
// count, so that no check and no alert misses a name.
package mntr
