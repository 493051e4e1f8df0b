// Package monitor makes the metrics of a server from its counters: names, order and units
// match ZooKeeper's mntr command, which package fourletter prints and package metrics
// exports.
//
// It imports the standard library, stats and histogram, whose numbers it reads, status and
// mntr for the result, fourletter for the format of a number, and raftfsm, watch and limits
// for their own numbers. It changes nothing.
package monitor
