// Package mntr makes the lines of ZooKeeper's four-letter word mntr.
//
// It imports the standard library, status for the metrics, and fourletter for the format of
// numbers. The server adds its own values.
//
// We export every name that ZooKeeper 3.9 exports, with 0 for metrics that we don't have,
// so that no check or alert misses a name.
package mntr
