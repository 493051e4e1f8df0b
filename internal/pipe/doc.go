// Package pipe connects two goroutines like a socket, within the process.
//
// It imports the standard library only.
package pipe
