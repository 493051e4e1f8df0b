// Package histogram records durations and sizes on the hot paths of the server, the
// log and the network between servers.
//
// It imports the standard library only. An observation takes a few atomic additions,
// no lock, and no allocation except the first one of a Summary. All other work
// happens when a caller reads the Summary. Names and exposition of the numbers are up
// to the packages that use it.
package histogram
