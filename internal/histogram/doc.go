// Package histogram counts durations and sizes where they happen: on the hot path
// of the server, of the log and of the network between servers.
//
// It imports the standard library only. Observing takes a few atomic additions,
// no lock and no allocation but the first of a Summary; everything else is done
// when somebody asks. What the numbers are called, and who gets to see them, is
// decided elsewhere.
package histogram
