// Package monitor makes the metrics of a server from its counters: names, order and units
// match ZooKeeper's mntr command, which package fourletter prints and package metrics
// exports.
//
// It imports the standard library, the packages that count (stats, histogram, raftfsm,
// watch, limits and mirrored), status and mntr for the result, and fourletter for the format
// of a number. It only reads.
package monitor
